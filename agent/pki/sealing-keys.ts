/**
 * Cluster keys are Ed25519, which signs; what is sealed to a cluster needs X25519. The two are one curve in two forms (RFC 7748, section 4.1), so that the
 * key that a peer has pinned is the key that is sealed to, and no second key has to be announced. Pure.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { AppError } from '#shared/errors/app-error.ts';

const p = 2n ** 255n - 19n;
const spkiPrefix = Buffer.from('302a300506032b656e032100', 'hex');
const pkcs8Prefix = Buffer.from('302e020100300506032b656e04220420', 'hex');

const modulo = (value: bigint): bigint => ((value % p) + p) % p;

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = modulo(base);
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = modulo(result * square);
    square = modulo(square * square);
  }
  return result;
}

const fromLittleEndian = (bytes: Uint8Array): bigint =>
  BigInt(`0x${Buffer.from(bytes).reverse().toString('hex') || '0'}`);
const toLittleEndian = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse();

const raw = (key: KeyObject, member: 'x' | 'd'): Buffer =>
  Buffer.from((key.export({ format: 'jwk' }) as Record<string, string>)[member] ?? '', 'base64url');

function requireEd25519(key: KeyObject): void {
  if (key.asymmetricKeyType === 'ed25519') return;
  throw new AppError(
    'invalid_input',
    `the cluster key is of type ${key.asymmetricKeyType}: tokens are sealed to Ed25519 keys only; isthmus rotate-key makes one`,
  );
}

/** Fails with `invalid_input` for a key that is not Ed25519. */
export function sealingKeyOf(publicKey: KeyObject): KeyObject {
  requireEd25519(publicKey);
  const bytes = raw(publicKey, 'x');
  bytes[31] = (bytes[31] ?? 0) & 0x7f;
  const y = fromLittleEndian(bytes);
  // u = (1 + y) / (1 - y). Of y = 1, the neutral element, there is none: power(0) is 0, the point that X25519 refuses.
  const u = modulo((1n + y) * power(1n - y, p - 2n));
  return createPublicKey({ key: Buffer.concat([spkiPrefix, toLittleEndian(u)]), format: 'der', type: 'spki' });
}

/** Fails with `invalid_input` for a key that is not Ed25519. */
export function openingKeyOf(privateKey: KeyObject): KeyObject {
  requireEd25519(privateKey);
  const secret = createHash('sha512').update(raw(privateKey, 'd')).digest().subarray(0, 32);
  return createPrivateKey({ key: Buffer.concat([pkcs8Prefix, secret]), format: 'der', type: 'pkcs8' });
}
