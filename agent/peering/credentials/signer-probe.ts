/**
 * Finds out whether this cluster signs client certificates: managed clusters such as EKS approve a request and never answer it. The request is for a
 * key that is not kept and a name that has no rights. The finding stands on the Secret with the key pair of the cluster. One that says certificates is
 * kept; one that says tokens may come from a signer that was down, so the agent asks again when it starts and every hour.
 */
import { keysSecret } from '#agent/model/peering-selections.ts';
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { type CertificateSigningRequest, certificateSigningRequests, secrets } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, refOf, type Secret } from '#shared/domain/kube-object.ts';
import { authenticationKeysSecret, isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { askAgainMs, awaitedChoice, type CredentialChoice, choiceOf, type ProbeRequest, verdictOf } from './choice.ts';

const lookMs = 500;
const probeName = 'isthmus-signer-probe';
const subject = { commonName: probeName, organization: 'isthmus.dev' };

const buildProbe = (name: string): CertificateSigningRequest => ({
  apiVersion: apiVersionOf(certificateSigningRequests),
  kind: certificateSigningRequests.kind,
  metadata: { name, labels: { [label.managed]: 'true' } },
  spec: {
    request: toBase64(buildCertificateRequest(subject, generateClusterKeys().privateKey)),
    signerName: 'kubernetes.io/kube-apiserver-client',
    usages: ['digital signature', 'key encipherment', 'client auth'],
    expirationSeconds: 600,
  },
});

const refusalOf = ({ status }: CertificateSigningRequest): string | undefined => {
  const refusal = status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed');
  return (
    refusal && `a request was ${refusal.type.toLowerCase()}: ${refusal.message ?? refusal.reason ?? 'no reason given'}`
  );
};

export function createSignerProbeController({ cluster, config, clock, ids, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
  const keys = keysSecret(caches, config.systemNamespace);
  const reportWait = createReportWait(events, clock);
  /** Of this process: one that an agent before it left behind says nothing about now. */
  let asked: { readonly name: string; readonly atMs: number } | undefined;
  let nextAtMs = 0;

  async function approve(request: CertificateSigningRequest, signal: AbortSignal): Promise<void> {
    const now = new Date(clock.now()).toISOString();
    const approved = {
      type: 'Approved',
      status: 'True',
      reason: 'SignerProbe',
      message: 'the agent finds out whether this cluster signs certificates',
      lastUpdateTime: now,
      lastTransitionTime: now,
    };
    const status = { ...request.status, conditions: [approved] };
    await api.update(certificateSigningRequests, { ...request, status }, { subresource: 'approval' }, signal);
  }

  /** The name is kept before anything is written: a request whose answer was lost is found, approved and deleted by it. */
  async function look(signal: AbortSignal): Promise<ProbeRequest> {
    const suffix = Buffer.from(ids.bytes(6)).toString('hex');
    asked ??= { name: `${probeName}-${suffix}`, atMs: clock.now() };
    const { name } = asked;
    const request =
      (await api.get(certificateSigningRequests, { name }, signal)) ??
      (await api.create(certificateSigningRequests, buildProbe(name), {}, signal));
    const refusal = refusalOf(request);
    const isApproved = request.status?.conditions?.some(({ type }) => type === 'Approved') ?? false;
    if (refusal === undefined && !isApproved) await approve(request, signal);
    return { isSigned: (request.status?.certificate ?? '') !== '', refusal };
  }

  /** What an API server that refuses says counts; what a broken connection says does not. */
  async function probe(signal: AbortSignal): Promise<ProbeRequest> {
    try {
      return await look(signal);
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'kube_forbidden' && code !== 'kube_not_found' && code !== 'kube_invalid') throw error;
      return { isSigned: false, refusal: messageOf(error) };
    }
  }

  async function forget(signal: AbortSignal): Promise<void> {
    if (asked !== undefined)
      await api.delete(certificateSigningRequests, { name: asked.name }, {}, signal).catch((error: unknown) => {
        // Where requests may not be made, they may not be deleted either, and there is none.
        if (!['kube_not_found', 'kube_forbidden'].includes(codeOf(error) ?? '')) throw error;
      });
    asked = undefined;
  }

  async function note(secret: Secret, { kind, reason = '' }: CredentialChoice, signal: AbortSignal): Promise<void> {
    const annotations = { [isthmusAnnotation.credentials]: kind, [isthmusAnnotation.credentialsReason]: reason };
    await api.mergePatch(secrets, refOf(secret), { metadata: { annotations } }, {}, signal);
    events.emit(secret, 'Normal', 'CredentialsChosen', `consumers get a ${kind}: ${reason}`);
    log.info('credentials of consumers chosen', { kind, reason });
  }

  return createController(
    {
      name: 'signer-probe',
      workers: 1,
      watches: [watch(keys, () => [authenticationKeysSecret])],
      async reconcile(_key, signal): Promise<Outcome> {
        const secret = keys.list()[0];
        if (secret === undefined || config.credentials !== 'auto') return settled;
        const known = choiceOf(config, secret);
        if (known?.kind === 'certificate') return settled;
        if (known !== undefined && clock.now() < nextAtMs) return again(nextAtMs - clock.now());
        const request = await probe(signal);
        const found = verdictOf(request, asked?.atMs ?? clock.now(), clock.now());
        if (found === undefined)
          return known === undefined ? reportWait(secret, waiting(awaitedChoice, lookMs)) : again(lookMs);
        await forget(signal);
        nextAtMs = clock.now() + askAgainMs;
        if (found.kind !== known?.kind || found.reason !== known.reason) await note(secret, found, signal);
        return found.kind === 'token' ? again(askAgainMs) : settled;
      },
    },
    { clock, log },
  );
}
