/**
 * Has a consumer's certificate signed by the cluster's own signer, and again when two thirds of its life are over. Every step is found again
 * after an interruption: the request by its name, the result in its Secret. The signer's answer comes by watch.
 */
import { certifies, renewAtMs } from '#agent/pki/certificate.ts';
import type { Subject } from '#agent/pki/certificate-request.ts';
import { fromBase64, toBase64 } from '#agent/pki/pem.ts';
import type { Cache, KubeApi } from '#kube/model/types.ts';
import {
  type CertificateSigningRequest,
  certificateSigningRequests,
  clusterRoleBindings,
  roleBindings,
  secrets,
} from '#shared/domain/core-kinds.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { fieldManager, label } from '#shared/domain/liqo-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { foreignGrant } from './impersonation.ts';
import {
  approvalReason,
  buildCertificateSecret,
  buildSigningRequest,
  certificateSecretName,
  foreignRequest,
  type Holder,
  readIssued,
  requestLabels,
  requestName,
} from './issued-certificate.ts';

export interface IssueDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly secretCache: Cache<Secret>;
  readonly requestCache: Cache<CertificateSigningRequest>;
  readonly lifetimeSeconds: number;
}

export type Issue =
  /** base64 of the PEM; `pending`: what a renewal under way waits for. */
  | {
      readonly state: 'issued';
      readonly certificate: string;
      readonly renewAtMs: number;
      readonly fresh: boolean;
      readonly pending?: string;
    }
  | { readonly state: 'waiting'; readonly on: string }
  | { readonly state: 'refused'; readonly reason: string; readonly message: string };

/** `csrPem` must have been checked against `subject`. */
export async function ensureCertificate(
  deps: IssueDeps,
  holder: Holder,
  subject: Subject,
  csrPem: string,
  signal: AbortSignal,
): Promise<Issue> {
  const { api, clock, lifetimeSeconds } = deps;
  const csr = toBase64(csrPem);
  const due = (issued: NonNullable<ReturnType<typeof readIssued>>): number =>
    renewAtMs(fromBase64(issued.certificate), issued.issuedAtMs, lifetimeSeconds * 1000);
  const ref = { namespace: holder.namespace, name: certificateSecretName(holder) };
  const current = (secret: Secret | undefined): ReturnType<typeof readIssued> => {
    const issued = readIssued(secret);
    return issued !== undefined && issued.csr === csr && certifies(fromBase64(issued.certificate), subject)
      ? issued
      : undefined;
  };
  let issued = current(deps.secretCache.get(ref));
  // The cache may not have seen yet what the previous pass stored.
  if (issued === undefined || due(issued) <= clock.now()) issued = current(await api.get(secrets, ref, signal));
  if (issued !== undefined && due(issued) > clock.now()) {
    await discardRequests(deps, holder, undefined, signal);
    return { state: 'issued', certificate: issued.certificate, renewAtMs: due(issued), fresh: false };
  }
  const step = await signedBy(deps, holder, subject, csrPem, requestName(holder, csr, issued?.certificate), signal);
  if (step.state === 'signed') {
    const now = clock.now();
    const secret = buildCertificateSecret(holder, csr, step.certificate, now);
    await api.apply(secrets, secret, { fieldManager: fieldManager.agent }, signal);
    await discardRequests(deps, holder, undefined, signal);
    const renewAt = renewAtMs(fromBase64(step.certificate), now, lifetimeSeconds * 1000);
    return { state: 'issued', certificate: step.certificate, renewAtMs: renewAt, fresh: true };
  }
  if (issued === undefined) return step;
  // A certificate that still works is not given up because its successor is late.
  const pending = step.state === 'waiting' ? step.on : step.message;
  return { state: 'issued', certificate: issued.certificate, renewAtMs: clock.now() + 10_000, fresh: false, pending };
}

type Step = Exclude<Issue, { state: 'issued' }> | { readonly state: 'signed'; readonly certificate: string };

async function signedBy(
  deps: IssueDeps,
  holder: Holder,
  subject: Subject,
  csrPem: string,
  name: string,
  signal: AbortSignal,
): Promise<Step> {
  const { api } = deps;
  const wanted = buildSigningRequest(holder, name, csrPem, deps.lifetimeSeconds);
  let request = deps.requestCache.get({ name }) ?? (await api.get(certificateSigningRequests, { name }, signal));
  if (request !== undefined) {
    const foreign = foreignRequest(request, wanted, await ownName(api, signal));
    if (foreign !== undefined) {
      const { uid } = request.metadata;
      await api.delete(certificateSigningRequests, { name }, uid === undefined ? {} : { uid }, signal);
      return {
        state: 'refused',
        reason: 'ForeignRequest',
        message: `CertificateSigningRequest ${name} is not the one of this agent: ${foreign}; it was not approved, and deleted. If it comes again, find who may create certificatesigningrequests`,
      };
    }
  }
  if (request === undefined) {
    const [own, wide] = await Promise.all([
      api.list(roleBindings, {}, signal),
      api.list(clusterRoleBindings, {}, signal),
    ]);
    const conflict = foreignGrant(holder.consumer, [holder.consumer, subject.commonName], [...own, ...wide]);
    if (conflict !== undefined) return { state: 'refused', reason: 'NameHasRights', message: conflict };
    await discardRequests(deps, holder, name, signal);
    const created = await createRequest(api, wanted, signal);
    // Another request took the name meanwhile: the next pass compares it.
    if (created === undefined) return { state: 'waiting', on: `CertificateSigningRequest ${name}, made a moment ago` };
    request = created;
  }
  const refusal = request.status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed');
  if (refusal !== undefined) {
    return {
      state: 'refused',
      reason: `Signing${refusal.type}`,
      message: `CertificateSigningRequest ${name} was ${refusal.type.toLowerCase()}: ${refusal.message ?? refusal.reason ?? 'no reason given'}; delete it to try again`,
    };
  }
  if (!request.status?.conditions?.some(({ type }) => type === 'Approved'))
    request = await approve(deps, request, signal);
  const certificate = request.status?.certificate;
  if (certificate === undefined) {
    return {
      state: 'waiting',
      on: `the signer kubernetes.io/kube-apiserver-client of this cluster to sign CertificateSigningRequest ${name}`,
    };
  }
  if (!certifies(fromBase64(certificate), subject)) {
    return {
      state: 'refused',
      reason: 'WrongSubject',
      message: `the signer certified another subject than CN=${subject.commonName}, O=${subject.organization}`,
    };
  }
  return { state: 'signed', certificate };
}

async function createRequest(
  api: KubeApi,
  wanted: CertificateSigningRequest,
  signal: AbortSignal,
): Promise<CertificateSigningRequest | undefined> {
  try {
    return await api.create(certificateSigningRequests, wanted, {}, signal);
  } catch (error) {
    if (codeOf(error) !== 'kube_already_exists') throw error;
    return undefined;
  }
}

/** By which name this API server knows the agent. */
async function ownName(api: KubeApi, signal: AbortSignal): Promise<string> {
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const { status } = await api.postPath<{ readonly status?: { readonly userInfo?: { readonly username?: string } } }>(
    path,
    review,
    signal,
  );
  return status?.userInfo?.username ?? '';
}

async function approve(
  { api, clock }: IssueDeps,
  request: CertificateSigningRequest,
  signal: AbortSignal,
): Promise<CertificateSigningRequest> {
  const now = new Date(clock.now()).toISOString();
  const approved = {
    type: 'Approved',
    status: 'True',
    reason: approvalReason,
    message: 'this agent checked the request against the Tenant',
    lastUpdateTime: now,
    lastTransitionTime: now,
  };
  const conditions = [...(request.status?.conditions ?? []), approved];
  return api.update(
    certificateSigningRequests,
    { ...request, status: { ...request.status, conditions } },
    { subresource: 'approval' },
    signal,
  );
}

/** Requests are means, not results: none stays behind once it has served or no longer can. */
async function discardRequests(
  deps: IssueDeps,
  holder: Holder,
  except: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const labels = requestLabels(holder);
  for (const request of deps.requestCache.list()) {
    const has = request.metadata.labels ?? {};
    const isHolders =
      has[label.remoteClusterId] === holder.consumer &&
      has[label.resourceSliceName] === labels[label.resourceSliceName];
    if (isHolders && request.metadata.name !== except) {
      await deps.api.delete(certificateSigningRequests, { name: request.metadata.name }, {}, signal);
    }
  }
}
