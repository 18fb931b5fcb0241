/** Gets, keeps and renews the serving certificate of one kubelet endpoint: self-signed at once, from the cluster's signer as soon as it answers. */

import { generateKeyPairSync } from 'node:crypto';
import { lifetimeOf } from '#agent/pki/certificate.ts';
import { fromBase64, toBase64 } from '#agent/pki/pem.ts';
import { type ServingSubject, selfSignedCertificate, servingRequest } from '#agent/pki/serving-request.ts';
import type { Caches, KubeApi } from '#kube/model/types.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { type CertificateSigningRequest, certificateSigningRequests } from '#shared/domain/core-kinds.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { Log } from '#shared/ports/log.ts';

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface ServingCertificateDeps {
  readonly api: KubeApi;
  readonly caches: Caches;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

const signerName = 'kubernetes.io/kubelet-serving';
const dayMs = 24 * 3_600_000;
const requestedSeconds = 30 * 24 * 3_600;
/** How long the signer may take. */
const patienceMs = 60_000;
const retryMs = 10 * 60_000;

const newKey = (): string =>
  generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey;

/** Good for a year; replaced long before. */
export function selfSigned(
  subject: ServingSubject,
  { clock, ids }: Pick<ServingCertificateDeps, 'clock' | 'ids'>,
): KeyPair {
  const key = newKey();
  const now = clock.now();
  const validity = { notBeforeMs: now - 3_600_000, notAfterMs: now + 365 * dayMs };
  return { key, cert: selfSignedCertificate(subject, key, validity, ids.bytes(16)) };
}

/** The name is fixed per node, so that a crash between asking and receiving leaves one request behind at most, and the next try removes it. */
const requestName = (nodeName: string): string => `isthmus-kubelet-serving-${nodeName}`.slice(0, 253);

/** What a life that ended between asking and receiving may have left: for nodes that go. */
export const forgetRequest = (nodeName: string, api: KubeApi, signal: AbortSignal): Promise<unknown> =>
  api.delete(certificateSigningRequests, { name: requestName(nodeName) }, {}, signal);

/** Asks the cluster's signer; nothing stays behind. Fails with `deadline_exceeded` when no signer answers. */
export async function requestCertificate(
  subject: ServingSubject,
  deps: ServingCertificateDeps,
  signal: AbortSignal,
): Promise<KeyPair> {
  const { api, caches, clock } = deps;
  const key = newKey();
  const name = requestName(subject.nodeName);
  const stop = new AbortController();
  const until = abortsWith(signal, stop.signal);
  try {
    await api.delete(certificateSigningRequests, { name }, {}, signal);
    // Without the signal: a request given up on its way may be carried out after the removal below.
    const created = await api.create(certificateSigningRequests, signingRequest(name, subject, key));
    await approve(created, deps, signal);
    const cache = caches.scoped(certificateSigningRequests, { fieldSelector: `metadata.name=${name}` }, until);
    const issued = new Promise<string>((resolve, reject) => {
      cache.subscribe(({ after }) => {
        if (after?.metadata.uid !== created.metadata.uid) return;
        const failed = after?.status?.conditions?.find(({ type }) => type === 'Failed' || type === 'Denied');
        if (failed)
          reject(new AppError('kube_invalid', `the signer refused the request: ${failed.message ?? failed.reason}`));
        if (after?.status?.certificate) resolve(fromBase64(after.status.certificate));
      });
    });
    const late = clock.sleep(patienceMs, until).then(() => {
      throw new AppError('deadline_exceeded', `signer ${signerName} did not answer within ${patienceMs / 1000} s`);
    });
    return { key, cert: await Promise.race([issued, late]) };
  } finally {
    stop.abort();
    await api.delete(certificateSigningRequests, { name }).catch(() => undefined);
  }
}

const signingRequest = (name: string, subject: ServingSubject, key: string): CertificateSigningRequest =>
  ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name, labels: { [label.managed]: 'true', [label.virtualNode]: subject.nodeName.slice(0, 63) } },
    spec: {
      request: toBase64(servingRequest(subject, key)),
      signerName,
      expirationSeconds: requestedSeconds,
      usages: ['digital signature', 'server auth'],
    },
  }) as CertificateSigningRequest;

/** We approve what we have just made ourselves, and nothing else: by its uid and version. */
async function approve(
  created: CertificateSigningRequest,
  { api, clock }: ServingCertificateDeps,
  signal: AbortSignal,
): Promise<void> {
  const now = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
  const condition = {
    type: 'Approved',
    status: 'True',
    reason: 'IsthmusVirtualKubelet',
    message: 'requested by the agent for the kubelet endpoint of its own virtual node',
    lastUpdateTime: now,
    lastTransitionTime: now,
  };
  const approved = { ...created, status: { ...created.status, conditions: [condition] } };
  await api.update(certificateSigningRequests, approved, { subresource: 'approval' }, signal);
}

/** Hands over a new pair whenever there is a better one; returns when the signal aborts. */
export async function keepCertificate(
  subject: ServingSubject,
  deps: ServingCertificateDeps,
  use: (pair: KeyPair) => void,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = deps;
  while (!signal.aborted) {
    let pauseMs = retryMs;
    try {
      const pair = await requestCertificate(subject, deps, signal);
      use(pair);
      const { notAfterMs } = lifetimeOf(pair.cert);
      pauseMs = Math.max(retryMs, ((notAfterMs - clock.now()) * 2) / 3);
    } catch (error) {
      if (signal.aborted) return;
      log.warn('the endpoint keeps its certificate; the cluster signed none', {
        code: codeOf(error),
        error: messageOf(error),
      });
    }
    await clock.sleep(pauseMs, signal).catch(() => undefined);
  }
}
