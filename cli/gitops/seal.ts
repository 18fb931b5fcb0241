/**
 * Secrets that may stand in Git: Bitnami's SealedSecret, which its controller opens inside the cluster and Argo CD and Flux apply as it is.
 * Each value is AES-256-GCM under a fresh key, that key RSA-OAEP (SHA-256) under the controller's certificate, bound to namespace and name
 * (the scope `strict`). Format: two bytes with the length of the wrapped key, the wrapped key, cipher text and tag.
 */
import { constants, createCipheriv, publicEncrypt, randomBytes, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { KubeObject, Secret } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';

const keyBytes = 32;
/** The key is used once, so the nonce may be fixed; the controller expects this one. */
const zeroNonce = Buffer.alloc(12);

export interface SealedSecret extends KubeObject {
  readonly spec: {
    readonly encryptedData: Readonly<Record<string, string>>;
    readonly template: Pick<Secret, 'metadata' | 'type'>;
  };
}

/** `label`: NAMESPACE/NAME. Base64. */
export function sealValue(certificate: X509Certificate, label: string, value: Uint8Array): string {
  const key = randomBytes(keyBytes);
  const wrapped = publicEncrypt(
    {
      key: certificate.publicKey,
      padding: constants.RSA_PKCS1_OAEP_PADDING,
      oaepHash: 'sha256',
      oaepLabel: Buffer.from(label),
    },
    key,
  );
  const cipher = createCipheriv('aes-256-gcm', key, zeroNonce);
  const text = Buffer.concat([cipher.update(value), cipher.final(), cipher.getAuthTag()]);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(wrapped.length);
  return Buffer.concat([length, wrapped, text]).toString('base64');
}

export function sealSecret(certificate: X509Certificate, secret: Secret): SealedSecret {
  const { name, namespace = '' } = secret.metadata;
  const entries = Object.entries(secret.data ?? {});
  return {
    apiVersion: 'bitnami.com/v1alpha1',
    kind: 'SealedSecret',
    metadata: { name, namespace },
    spec: {
      encryptedData: Object.fromEntries(
        entries.map(([key, value]) => [
          key,
          sealValue(certificate, `${namespace}/${name}`, Buffer.from(value, 'base64')),
        ]),
      ),
      template: { metadata: { ...secret.metadata }, ...(secret.type === undefined ? {} : { type: secret.type }) },
    },
  };
}

/** What `kubeseal --fetch-cert` prints. Fails with `invalid_input` for anything but an RSA certificate. */
export async function readSealingCertificate(file: string, option: string): Promise<X509Certificate> {
  const refuse = (why: string, cause?: unknown) =>
    new AppError('invalid_input', `${option} ${file} ${why}`, {
      ...(cause === undefined ? {} : { cause }),
      detail: {
        field: option,
        value: file,
        remedy: "name the certificate of the cluster's sealed-secrets controller: kubeseal --fetch-cert > cert.pem",
      },
    });
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(await readFile(file));
  } catch (cause) {
    throw refuse(`is no certificate: ${(cause as Error).message}`, cause);
  }
  if (certificate.publicKey.asymmetricKeyType !== 'rsa') throw refuse('is no RSA certificate');
  return certificate;
}
