/**
 * A bearer token that only one cluster can read: a compact JWE (RFC 7516), ECDH-ES with A256GCM, to the cluster's own key. Its header says to which key,
 * and when the token ends. Anybody can seal something to a public key: what comes out of it has to be checked. `jose` encrypts and decrypts.
 */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { CompactEncrypt, compactDecrypt, decodeJwt, decodeProtectedHeader } from 'jose';
import { AppError } from '#shared/errors/app-error.ts';
import { type ClusterKeys, fingerprintOf, type OwnKeys } from './cluster-keys.ts';
import { openingKeyOf, sealingKeyOf } from './sealing-keys.ts';

const typ = 'isthmus-token';
const alg = 'ECDH-ES';
const enc = 'A256GCM';

/** Fails with `invalid_input` for a key that nothing can be sealed to. `endMs`: when the token ends. */
export function sealToken(token: string, to: KeyObject, endMs: number): Promise<string> {
  return new CompactEncrypt(Buffer.from(token))
    .setProtectedHeader({ alg, enc, typ, kid: fingerprintOf(to), exp: Math.floor(endMs / 1000) })
    .encrypt(sealingKeyOf(to));
}

export interface SealedToken {
  /** Fingerprint of the cluster key that opens it. */
  readonly key: string;
  readonly endMs: number;
}

/** What a sealed token says of itself, unproven. Undefined: it is none. */
export function readSealedToken(text: string): SealedToken | undefined {
  try {
    const header = decodeProtectedHeader(text);
    const { kid, exp } = header as { readonly kid?: unknown; readonly exp?: unknown };
    if (header.alg !== alg || header.enc !== enc || header.typ !== typ || 'crit' in header) return undefined;
    return typeof kid === 'string' && Number.isSafeInteger(exp)
      ? { key: kid, endMs: (exp as number) * 1000 }
      : undefined;
  } catch {
    return undefined;
  }
}

const keyIn = ({ publicKey }: ClusterKeys): string => fingerprintOf(createPublicKey(publicKey));

/** Of the two pairs, the one that a token was sealed to; undefined: it is for another cluster, or for a key of ours that is forgotten. */
export const keysOfSealedToken = (own: OwnKeys, sealed: SealedToken): ClusterKeys | undefined =>
  [own, ...(own.previous === undefined ? [] : [own.previous])].find((pair) => keyIn(pair) === sealed.key);

/** `isFor`: of whom the token speaks at the provider, its user name. */
export interface Expected {
  readonly isFor: (user: string) => boolean;
}

/**
 * The token. Fails with `invalid_input` saying why: it is no sealed token, is sealed to a key that this cluster does not have, was altered, or holds what
 * is no token of the expected account. That it is genuine is for the provider's API server to say.
 */
export async function openSealedToken(text: string, own: OwnKeys, { isFor }: Expected): Promise<string> {
  const sealed = readSealedToken(text);
  if (sealed === undefined) throw refused('is no token that Isthmus has sealed');
  const pair = keysOfSealedToken(own, sealed);
  if (pair === undefined) throw refused(`is sealed to key ${sealed.key}, which this cluster does not have`);
  const token = await decrypt(text, createPrivateKey(pair.privateKey));
  const { sub, exp } = claimsOf(token);
  if (typeof sub !== 'string' || !isFor(sub))
    throw refused('holds a token of another account than the one for this Identity');
  if (exp === undefined || exp * 1000 !== sealed.endMs) throw refused('says another end than the token in it');
  return token;
}

async function decrypt(text: string, key: KeyObject): Promise<string> {
  const only = { keyManagementAlgorithms: [alg], contentEncryptionAlgorithms: [enc] };
  try {
    const { plaintext } = await compactDecrypt(text, openingKeyOf(key), only);
    return Buffer.from(plaintext).toString();
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw refused('was altered on its way');
  }
}

function claimsOf(token: string): { readonly sub?: unknown; readonly exp?: number } {
  try {
    return decodeJwt(token);
  } catch {
    throw refused('holds no token of an API server');
  }
}

/** Nothing that was opened is quoted. */
const refused = (problem: string): AppError =>
  new AppError(
    'invalid_input',
    `authParams.sealedToken ${problem}; accepted is what the provider has sealed to this cluster`,
  );
