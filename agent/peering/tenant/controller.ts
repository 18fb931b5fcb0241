/** Provider: a Tenant that proves its key gets a certificate and its rights, keeps both while it may, and loses them with the Tenant. */
import { controlPlaneSubject } from '#agent/model/peer-user.ts';
import {
  keysSecret,
  peerClusterRoleBindings,
  peerOf,
  peerRoleBindings,
  peerSecrets,
  remoteClusterRoles,
  signingRequests,
  tenantNamespaces,
  tenantsByCluster,
} from '#agent/model/peering-selections.ts';
import { isReplica } from '#agent/model/slice-roles.ts';
import { placementOf } from '#agent/model/tenant-namespaces.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { ownerOf } from '#kube/writes/owner-references.ts';
import { addFinalizer, deleteObject, dropFinalizer, writeStatus } from '#kube/writes/write-if-changed.ts';
import { certificateSigningRequests, secrets } from '#shared/domain/core-kinds.ts';
import { type KubeObject, keyOf, refOfKey } from '#shared/domain/kube-object.ts';
import { annotation, finalizer, isthmusLabel, label } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type Tenant, tenants } from '#shared/schema/liqo/tenant.ts';
import { choiceOf } from '../credentials/choice.ts';
import type { CredentialIssue } from '../credentials/issue-token.ts';
import { credentialSecretName } from '../credentials/issued-token.ts';
import { certificateSeconds, type PeeringDeps } from '../model/deps.ts';
import { ensureBindings, missingRole } from './bindings.ts';
import { checkHandshake, type Handshake } from './handshake.ts';
import { accessParams, ensureCredential, requestOf } from './issue-credential.ts';
import { certificateSecretName, type Holder } from './issued-certificate.ts';
import { validateKey } from './known-key.ts';
import { withChoice, withCredentials, withoutCredentials } from './status.ts';

export function createTenantController({ cluster, config, clock, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
  const cache = tenantsByCluster(caches);
  const secretCache = peerSecrets(caches);
  const namespaces = tenantNamespaces(caches);
  const requestCache = signingRequests(caches);
  const slices = caches.cache(resourceSlices);
  const maps = caches.cache(namespaceMaps);
  const renewals = caches.cache(renews);
  const roles = remoteClusterRoles(caches);
  const bindingCaches = {
    roles,
    bound: peerRoleBindings(caches),
    boundWide: peerClusterRoleBindings(caches),
    secrets: secretCache,
  };
  const keys = keysSecret(caches, config.systemNamespace);
  const issueDeps = {
    ...{ api, clock, secretCache, requestCache, config, keys },
    lifetimeSeconds: certificateSeconds(config),
  };
  const reportWait = createReportWait(events, clock);
  const ofPeer = (object: KubeObject): string[] => cache.byIndex('cluster', peerOf(object) ?? '').map(keyOf);
  /** Verifying again what was verified costs a signature check per pass; the last good handshake of each Tenant is enough. */
  const verified = new Map<string, string>();

  const replicasOf = (tenant: Tenant) => {
    // The namespace decides, not the origin label: every copy in this namespace is this consumer's.
    const isTheirs = (object: KubeObject): boolean =>
      object.metadata.namespace === tenant.metadata.namespace && isReplica(object);
    return {
      slices: slices.list().filter(isTheirs),
      maps: maps.list().filter(isTheirs),
      renewals: renewals.list().filter(isTheirs),
    };
  };

  async function removed(tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    verified.delete(tenant.metadata.uid ?? '');
    const controlPlane = tenant.spec.authzPolicy === 'TolerateNoHandshake' ? 'leave' : false;
    await ensureBindings(api, bindingCaches, tenant, { controlPlane, clusterwide: false }, signal);
    // An administrator that ends a peering from this side first leaves the consumer no rights to take its copies away.
    const left = replicasOf(tenant);
    for (const slice of left.slices) await deleteObject(api, resourceSlices, slice, signal);
    for (const map of left.maps) await deleteObject(api, namespaceMaps, map, signal);
    for (const renew of left.renewals) await deleteObject(api, renews, renew, signal);
    for (const request of requestCache.list()) {
      if (peerOf(request) === tenant.spec.clusterID)
        await deleteObject(api, certificateSigningRequests, request, signal);
    }
    const { namespace = '' } = tenant.metadata;
    for (const secret of secretCache.list())
      if (secret.metadata.namespace === namespace && isIssued(secret)) await deleteObject(api, secrets, secret, signal);
    await dropFinalizer(api, tenants, tenant, finalizer.tenant, signal);
    return settled;
  }

  async function drain(tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    const left = replicasOf(tenant);
    const changed = await ensureBindings(
      api,
      bindingCaches,
      tenant,
      { controlPlane: false, clusterwide: false },
      signal,
    );
    for (const slice of left.slices) await deleteObject(api, resourceSlices, slice, signal);
    for (const map of left.maps) await deleteObject(api, namespaceMaps, map, signal);
    if (changed)
      events.emit(
        tenant,
        'Normal',
        'Drained',
        `the rights of ${tenant.spec.clusterID} and all it had here are taken back`,
      );
    const names = [...left.slices, ...left.maps].map((object) => `${object.kind} ${object.metadata.name}`);
    return names.length === 0 ? settled : waiting(`removal of ${names.join(', ')}`, 30_000);
  }

  async function cordon(tenant: Tenant, signal: AbortSignal): Promise<void> {
    const isCordoned = tenant.spec.tenantCondition === 'Cordoned';
    for (const { metadata } of replicasOf(tenant).slices) {
      if ((metadata.annotations?.[annotation.cordonTenant] === 'true') === isCordoned) continue;
      const patch = { metadata: { annotations: { [annotation.cordonTenant]: isCordoned ? 'true' : null } } };
      await api.mergePatch(
        resourceSlices,
        { namespace: metadata.namespace ?? '', name: metadata.name },
        patch,
        {},
        signal,
      );
    }
  }

  function handshake(tenant: Tenant, nonce: string): Handshake {
    const { publicKey = '', csr = '', signature = '' } = tenant.spec;
    const input = JSON.stringify([publicKey, csr, signature, nonce]);
    const uid = tenant.metadata.uid ?? '';
    if (verified.get(uid) === input) return { ok: true, csrPem: Buffer.from(csr, 'base64').toString() };
    const result = checkHandshake(tenant, nonce);
    if (result.ok) verified.set(uid, input);
    else verified.delete(uid);
    return result;
  }

  /** Rights and credentials end when the proof does. */
  async function revoke(tenant: Tenant, reason: string, message: string, signal: AbortSignal): Promise<Outcome> {
    await ensureBindings(api, bindingCaches, tenant, { controlPlane: false, clusterwide: false }, signal);
    return withhold(tenant, reason, message, signal);
  }

  /** Withholds credentials from the current request; those that were issued before stay valid. */
  async function withhold(tenant: Tenant, reason: string, message: string, signal: AbortSignal): Promise<Outcome> {
    const status = withoutCredentials(tenant.status, { reason, message }, new Date(clock.now()).toISOString());
    await writeStatus(api, tenants, tenant, status, signal);
    return stalled(reason, message);
  }

  async function admit(tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    const missing = missingRole(roles);
    if (missing !== undefined)
      return waiting(`a ClusterRole with label app.kubernetes.io/name=${missing} (part of the installation)`, 30_000);
    const tenantNamespace = tenant.metadata.namespace ?? '';
    if (tenant.spec.authzPolicy === 'TolerateNoHandshake') {
      await ensureBindings(api, bindingCaches, tenant, { controlPlane: 'leave', clusterwide: true }, signal);
      await writeStatus(api, tenants, tenant, withCredentials(tenant.status, { tenantNamespace }), signal);
      return settled;
    }
    const consumer = tenant.spec.clusterID;
    const nonce = secretCache
      .list()
      .find(
        (secret) =>
          secret.metadata.namespace === tenantNamespace && secret.metadata.labels?.[label.nonce] !== undefined,
      )?.data?.nonce;
    if (nonce === undefined)
      return waiting(
        `the nonce Secret of ${consumer} (label ${label.nonce}=true) in namespace ${tenantNamespace}`,
        30_000,
      );
    const proof = handshake(tenant, nonce);
    if (!proof.ok) return revoke(tenant, proof.reason, proof.message, signal);
    const holder: Holder = { consumer, namespace: tenantNamespace, owner: ownerOf(tenants, tenant) };
    const known = validateKey(tenant, requestOf(secretCache, holder));
    if (!known.ok) return withhold(tenant, known.reason, known.message, signal);
    if (known.by !== undefined)
      events.emit(tenant, 'Normal', 'PeerKeyAccepted', `the new key of ${consumer} is accepted by ${known.by}`);
    // The holder of the former key may be another cluster: what it was given ends with this.
    const former = secretCache.get({ namespace: tenantNamespace, name: credentialSecretName(holder) });
    if (known.by === 'consent' && former !== undefined) await deleteObject(api, secrets, former, signal);
    const request = { subject: controlPlaneSubject(consumer), csrPem: proof.csrPem };
    const issue = await ensureCredential(issueDeps, tenant, holder, request, signal);
    if (issue.state === 'refused') {
      const verdict = await revoke(tenant, issue.reason, issue.message, signal);
      reportWait(tenant, verdict);
      // What is in the way is not watched: look again.
      return again(30_000);
    }
    if (issue.state === 'waiting') return waiting(issue.on, 10_000);
    // Both are credentials of the account.
    const hasToken = issue.credential.sealedToken !== undefined || issue.credential.apiServer !== undefined;
    await ensureBindings(api, bindingCaches, tenant, { controlPlane: true, clusterwide: true, hasToken }, signal);
    return publish(tenant, issue, signal);
  }

  async function publish(
    tenant: Tenant,
    issue: CredentialIssue & { state: 'issued' },
    signal: AbortSignal,
  ): Promise<Outcome> {
    const authParams = accessParams(config, tenant, issue.credential);
    const had = tenant.status?.authParams;
    const tenantNamespace = tenant.metadata.namespace ?? '';
    const status = withCredentials(tenant.status, { tenantNamespace, authParams });
    const conditions = withChoice(status.conditions, choiceOf(config, keys.list()[0]), clock.now());
    await writeStatus(api, tenants, tenant, { ...status, ...(conditions.length > 0 && { conditions }) }, signal);
    const { signedCRT, sealedToken } = issue.credential;
    const { clusterID } = tenant.spec;
    if (signedCRT !== undefined && had?.signedCRT !== undefined && had.signedCRT !== signedCRT)
      events.emit(tenant, 'Normal', 'CertificateRenewed', `certificate of ${clusterID} renewed`);
    if (sealedToken !== undefined && had?.sealedToken !== undefined && had.sealedToken !== sealedToken)
      events.emit(tenant, 'Normal', 'TokenRenewed', `token of ${clusterID} renewed`);
    if (issue.pending !== undefined) return waiting(issue.pending, 10_000);
    return again(Math.min(Math.max(1_000, issue.renewAtMs - clock.now()), 6 * 3_600_000));
  }

  return createController(
    {
      name: 'tenant',
      watches: [
        watch(cache, (tenant) => [keyOf(tenant)]),
        watch(secretCache, (secret) => (isOfHandshake(secret) ? ofPeer(secret) : [])),
        watch(namespaces, ofPeer),
        watch(requestCache, (request) =>
          request.metadata.labels?.[label.resourceSliceName] === undefined ? ofPeer(request) : [],
        ),
        watch(bindingCaches.bound, ofPeer),
        watch(bindingCaches.boundWide, ofPeer),
        watch(slices, ofPeer),
        watch(maps, ofPeer),
        watch(renewals, ofPeer),
        watch(roles, () => cache.list().map(keyOf)),
        watch(keys, () => cache.list().map(keyOf)),
      ],
      async reconcile(key, signal) {
        const tenant = cache.get(refOfKey(key));
        if (tenant === undefined) return settled;
        if (tenant.metadata.deletionTimestamp !== undefined) return removed(tenant, signal);
        const placement = placementOf(tenant, tenant.spec.clusterID, namespaces.list());
        if ('outcome' in placement) return reportWait(tenant, placement.outcome);
        const rivals = cache.byIndex('cluster', tenant.spec.clusterID).filter((one) => isOlder(one, tenant));
        if (rivals[0] !== undefined) {
          return reportWait(
            tenant,
            stalled(
              'DuplicateTenant',
              `Tenant ${keyOf(rivals[0])} already speaks for ${tenant.spec.clusterID}; delete one of them`,
            ),
          );
        }
        const held = await addFinalizer(api, tenants, tenant, finalizer.tenant, signal);
        if (held.spec.tenantCondition === 'Drained') return reportWait(held, await drain(held, signal));
        await cordon(held, signal);
        return reportWait(held, await admit(held, signal));
      },
    },
    { clock, log },
  );
}

const isIssued = ({ metadata }: KubeObject): boolean =>
  metadata.labels?.[isthmusLabel.credentialOf] !== undefined || metadata.name === certificateSecretName({});
const isOfHandshake = (secret: KubeObject): boolean =>
  secret.metadata.labels?.[label.nonce] !== undefined || isIssued(secret);

const isOlder = (one: Tenant, than: Tenant): boolean => {
  const age = (tenant: Tenant): string => `${tenant.metadata.creationTimestamp} ${tenant.metadata.uid}`;
  return one.metadata.uid !== than.metadata.uid && age(one) < age(than);
};
