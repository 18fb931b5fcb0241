/** The key pair of a cluster, and signatures by the keys of peers. Ours is Ed25519; a peer that runs Liqo may use RSA or ECDSA. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
  X509Certificate,
} from 'node:crypto';
import { keySuccessionText } from '#shared/domain/key-succession.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { readPem } from './pem.ts';

export interface ClusterKeys {
  /** PEM, PKCS#8. Never leaves the cluster. */
  readonly privateKey: string;
  /** PEM, SPKI. */
  readonly publicKey: string;
}

export interface OwnKeys extends ClusterKeys {
  /** While a new pair takes over, providers still know the one before it. */
  readonly previous?: ClusterKeys;
  /** base64: by the pair before, which may be forgotten already. */
  readonly succession?: string;
}

/** Of the two pairs, the one that a certificate (PEM) was issued for; the new one for any other text. */
export function keysOfCertificate(keys: OwnKeys, certificate: string | undefined): ClusterKeys {
  if (keys.previous === undefined || certificate === undefined) return keys;
  try {
    const isPrevious = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(keys.previous.privateKey));
    return isPrevious ? keys.previous : keys;
  } catch {
    return keys;
  }
}

export function generateClusterKeys(): ClusterKeys {
  const pair = generateKeyPairSync('ed25519');
  return {
    privateKey: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: pair.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

/** DER of the SubjectPublicKeyInfo that belongs to a private key. */
export const publicDerOf = (privateKeyPem: string): Uint8Array =>
  createPublicKey(createPrivateKey(privateKeyPem)).export({ type: 'spki', format: 'der' });

const ed25519Prefix = Buffer.from('302a300506032b6570032100', 'hex');

/** A peer's public key: a PEM block `PUBLIC KEY`, or the 32 raw bytes that liqoctl before 1.0.2 wrote. */
export function readPublicKey(bytes: Uint8Array): KeyObject {
  const der =
    bytes.length === 32 ? Buffer.concat([ed25519Prefix, bytes]) : readPem(Buffer.from(bytes).toString(), 'PUBLIC KEY');
  try {
    return createPublicKey({ key: Buffer.from(der), format: 'der', type: 'spki' });
  } catch (cause) {
    throw new AppError(
      'invalid_input',
      'the public key is not a SubjectPublicKeyInfo; accepted are Ed25519, RSA and ECDSA keys',
      { cause },
    );
  }
}

export const publicKeyDer = (key: KeyObject): Uint8Array => key.export({ type: 'spki', format: 'der' });

/** How people and annotations name a key: `sha256:` and the hex digest of its SubjectPublicKeyInfo. */
export const fingerprintOf = (key: KeyObject): string =>
  `sha256:${createHash('sha256').update(publicKeyDer(key)).digest('hex')}`;

const successionText = (next: KeyObject): Uint8Array => Buffer.from(keySuccessionText(fingerprintOf(next)));

export const signSuccession = (previous: ClusterKeys, next: ClusterKeys): Uint8Array =>
  signWith(previous.privateKey, successionText(createPublicKey(next.publicKey)));

export const isSuccession = (previous: KeyObject, next: KeyObject, signature: Uint8Array): boolean =>
  verifyWith(previous, successionText(next), signature);

/** Ed25519 signs the bytes themselves; RSA (PKCS#1 v1.5) and ECDSA their SHA-256 digest. */
const digestFor = (key: KeyObject): string | null => (key.asymmetricKeyType === 'ed25519' ? null : 'sha256');

export function signWith(privateKeyPem: string, data: Uint8Array): Uint8Array {
  const key = createPrivateKey(privateKeyPem);
  return sign(digestFor(key), data, key);
}

export function verifyWith(key: KeyObject, data: Uint8Array, signature: Uint8Array, digest = digestFor(key)): boolean {
  try {
    return verify(digest, data, key, signature);
  } catch {
    // A signature of impossible shape for this kind of key.
    return false;
  }
}
