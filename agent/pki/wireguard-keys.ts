/** Key pairs of WireGuard (Curve25519) as 32 raw bytes each, the form that gateways' Secrets keep. */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';

export interface WireGuardKeys {
  readonly privateKey: Uint8Array;
  readonly publicKey: Uint8Array;
}

export const keyBytes = 32;

/** PKCS #8 of an X25519 key, up to the key itself (RFC 8410). */
const pkcs8Prefix = Buffer.from('302e020100300506032b656e04220420', 'hex');
/** X.509 SubjectPublicKeyInfo of an X25519 key, up to the key itself. */
const spkiLength = 12;

export function createWireGuardKeys(): WireGuardKeys {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'der' }).subarray(pkcs8Prefix.length),
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).subarray(spkiLength),
  };
}

/** Of a private key of 32 bytes. */
export const publicKeyOf = (privateKey: Uint8Array): Uint8Array =>
  createPublicKey(createPrivateKey({ key: Buffer.concat([pkcs8Prefix, privateKey]), type: 'pkcs8', format: 'der' }))
    .export({ type: 'spki', format: 'der' })
    .subarray(spkiLength);
