/** Provider: the credentials of a slice, which its consumer's virtual kubelet gets, and their end with the slice. */
import { sliceSubject } from '#agent/model/peer-user.ts';
import {
  type keysSecret,
  peerOf,
  type peerSecrets,
  type signingRequests,
  type tenantNamespaces,
  type tenantsByCluster,
} from '#agent/model/peering-selections.ts';
import { isAccepted } from '#agent/model/slice-roles.ts';
import { peerOfNamespace } from '#agent/model/tenant-namespaces.ts';
import { lifetimeOf } from '#agent/pki/certificate.ts';
import { checkCertificateRequest } from '#agent/pki/certificate-request.ts';
import { readPublicKey } from '#agent/pki/cluster-keys.ts';
import { fromBase64 } from '#agent/pki/pem.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { ownerName, ownerOf } from '#kube/writes/owner-references.ts';
import { deleteObject } from '#kube/writes/write-if-changed.ts';
import { certificateSigningRequests, secrets } from '#shared/domain/core-kinds.ts';
import type { ObjectRef } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import type { Credential } from '../credentials/issue-token.ts';
import { credentialSecretName } from '../credentials/issued-token.ts';
import { certificateSeconds, type PeeringDeps } from '../model/deps.ts';
import { accessParams, ensureCredential, heldCredential } from '../tenant/issue-credential.ts';
import { certificateSecretName, type Holder } from '../tenant/issued-certificate.ts';
import type { SliceFacts } from './status.ts';

/** Undefined when the request is right; otherwise why not. */
function requestRefusal(slice: ResourceSlice, tenant: Tenant, consumer: string): string | undefined {
  const { publicKey, authzPolicy } = tenant.spec;
  try {
    const key =
      authzPolicy === 'TolerateNoHandshake' ? undefined : readPublicKey(Buffer.from(publicKey ?? '', 'base64'));
    checkCertificateRequest(fromBase64(slice.spec.csr ?? ''), sliceSubject(slice.metadata.name, consumer), key);
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}

interface Deps extends Pick<PeeringDeps, 'clock' | 'config'> {
  readonly api: KubeApi;
  readonly keys: ReturnType<typeof keysSecret>;
  readonly secretCache: ReturnType<typeof peerSecrets>;
  readonly requestCache: ReturnType<typeof signingRequests>;
  readonly tenantCache: ReturnType<typeof tenantsByCluster>;
  readonly namespaces: ReturnType<typeof tenantNamespaces>;
}

export function createSliceAuthentication(deps: Deps) {
  const { api, clock, config, secretCache, requestCache, tenantCache, namespaces } = deps;
  const issueDeps = { ...deps, lifetimeSeconds: certificateSeconds(config) };

  /** Deletes what was issued for a slice, once the API server says as well that the slice is gone. */
  async function forget(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    const { namespace = '' } = ref;
    const consumer = peerOfNamespace(namespaces.list(), namespace);
    const of = { slice: ref.name };
    const stored = [certificateSecretName(of), credentialSecretName(of)]
      .map((secret) => secretCache.get({ namespace, name: secret }))
      .filter((secret) => secret !== undefined && ownerName(resourceSlices, secret) === ref.name);
    const requests = requestCache.list().filter((request) => {
      const of = peerOf(request) ?? '';
      return (
        request.metadata.labels?.[label.resourceSliceName] === ref.name &&
        (of === consumer || tenantCache.byIndex('cluster', of).length === 0)
      );
    });
    if (stored.length + requests.length === 0 || (await api.get(resourceSlices, ref, signal)) !== undefined) return;
    for (const secret of stored) if (secret !== undefined) await deleteObject(api, secrets, secret, signal);
    for (const request of requests) await deleteObject(api, certificateSigningRequests, request, signal);
  }

  /**
   * The consumer has changed its key and will send a new request shortly. Until then the credentials for this request stay, so that no pod loses its
   * node. They are not renewed. Undefined: there were none, or they have ended.
   */
  function heldBy(slice: ResourceSlice, tenant: Tenant): Credential | undefined {
    if (!isAccepted(slice, 'Authentication')) return undefined;
    const { namespace = '', name } = slice.metadata;
    const isValid = (certificate: string): boolean => lifetimeOf(fromBase64(certificate)).notAfterMs > clock.now();
    return heldCredential(secretCache, tenant, { namespace, slice: name }, slice.spec.csr, isValid, clock.now());
  }

  /** What authentication came to; an outcome when it is not decided yet. */
  async function authenticate(
    slice: ResourceSlice,
    tenant: Tenant,
    signal: AbortSignal,
  ): Promise<{ readonly facts: SliceFacts['authentication']; readonly next: Outcome } | { readonly outcome: Outcome }> {
    const consumer = tenant.spec.clusterID;
    const refusal = requestRefusal(slice, tenant, consumer);
    const held = refusal === undefined ? undefined : heldBy(slice, tenant);
    if (refusal !== undefined && held === undefined) return { facts: { denied: refusal }, next: settled };
    const holder: Holder = {
      consumer,
      namespace: slice.metadata.namespace ?? '',
      owner: ownerOf(resourceSlices, slice),
      slice: slice.metadata.name,
    };
    if (held !== undefined) return { facts: { authParams: accessParams(config, tenant, held) }, next: again(30_000) };
    const subject = sliceSubject(slice.metadata.name, consumer);
    const request = { subject, csrPem: fromBase64(slice.spec.csr ?? '') };
    const issue = await ensureCredential(issueDeps, tenant, holder, request, signal);
    if (issue.state === 'waiting') return { outcome: waiting(issue.on, 10_000) };
    if (issue.state === 'refused') return { facts: { denied: issue.message }, next: again(30_000) };
    const authParams = accessParams(config, tenant, issue.credential);
    const dueMs = Math.min(Math.max(1_000, issue.renewAtMs - clock.now()), 6 * 3_600_000);
    return { facts: { authParams }, next: issue.pending === undefined ? again(dueMs) : waiting(issue.pending, 10_000) };
  }

  return { authenticate, forget };
}
