/** Keeps the serving certificate and the secret path in one Secret that all replicas share: the first replica creates or renews it, the others read it. */
import { randomBytes } from 'node:crypto';
import { fromBase64, toBase64 } from '#agent/pki/pem.ts';
import {
  isFresh,
  issueServingCertificate,
  type ServingCertificate,
  validCertificates,
} from '#agent/pki/webhook-certificate.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { isChangedOrGone } from '#kube/writes/changed-or-gone.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';

export const certificateSecret = 'isthmus-webhook-certs';

export interface Certificates extends ServingCertificate {
  /** What API servers trust: the certificate, and the one before it for as long as a replica may still serve it. */
  readonly bundle: string;
  /** First part of every webhook path: 64 hexadecimal digits that only this Secret and the webhook configurations hold. */
  readonly secretPath: string;
}

const isSecretPath = (text: string | undefined): text is string => /^[0-9a-f]{64}$/.test(text ?? '');
const attempts = 10;

const read = ({ data = {} }: Secret): Partial<Certificates> => ({
  ...(data['ca.crt'] && { bundle: fromBase64(data['ca.crt']) }),
  ...(data['tls.crt'] && { certificate: fromBase64(data['tls.crt']) }),
  ...(data['tls.key'] && { privateKey: fromBase64(data['tls.key']) }),
  ...(data.path && { secretPath: fromBase64(data.path) }),
});

/** Every write is conditional: of two replicas that renew at once, one wins and the other reads what the winner wrote. */
export async function ensureCertificates(
  api: KubeApi,
  namespace: string,
  hosts: readonly string[],
  now: number,
  signal?: AbortSignal,
): Promise<Certificates> {
  const ref = { namespace, name: certificateSecret };
  for (let attempt = 0; attempt < attempts; attempt++) {
    const found = await api.get(secrets, ref, signal);
    const have = found ? read(found) : {};
    const isComplete = have.bundle?.includes(have.certificate ?? '') && isSecretPath(have.secretPath);
    if (isFresh(have, hosts, now) && isComplete) return have as Certificates;
    const issued = issueServingCertificate(hosts, now);
    const secretPath = isSecretPath(have.secretPath) ? have.secretPath : randomBytes(32).toString('hex');
    const bundle = [issued.certificate, ...validCertificates(have.bundle ?? '', now).slice(0, 2)].join('');
    const labels = { ...found?.metadata.labels, 'liqo.io/webhook': 'true', [label.managed]: 'true' };
    const resourceVersion = found?.metadata.resourceVersion;
    const data = {
      'ca.crt': toBase64(bundle),
      'tls.crt': toBase64(issued.certificate),
      'tls.key': toBase64(issued.privateKey),
      path: toBase64(secretPath),
    };
    try {
      if (found) await api.mergePatch(secrets, ref, { metadata: { labels, resourceVersion }, data }, {}, signal);
      else
        await api.create(
          secrets,
          { apiVersion: 'v1', kind: 'Secret', metadata: { ...ref, labels }, type: 'Opaque', data },
          {},
          signal,
        );
      return { ...issued, bundle, secretPath };
    } catch (error) {
      const lostRace = isChangedOrGone(error) || codeOf(error) === 'kube_already_exists';
      if (!lostRace || attempt === attempts - 1) throw error;
    }
  }
  throw new Error('unreachable: the last attempt returns or throws');
}
