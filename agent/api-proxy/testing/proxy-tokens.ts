/** A gate of the provider milan, and the tokens that its consumers show there, good and bad. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { type ProxyClaims, signProxyToken } from '#agent/pki/proxy-token.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { ProxyAuthorizer } from '../authorizer.ts';

export const rome = generateKeyPairSync('ed25519');
export const mallory = generateKeyPairSync('ed25519');
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
export const nonce = 'n'.repeat(24);
export const target = 'milan.example:6443';
export const start = Date.UTC(2026, 0, 1);

export function fixture() {
  const clock = new ManualClock(start);
  const users = new Map([
    ['rome', [mallory.publicKey, rome.publicKey]],
    ['oslo', [rsa.publicKey]],
  ]);
  const authorizer = new ProxyAuthorizer({
    clusterId: 'milan',
    targets: new Set([target]),
    nonce,
    clock,
    keysOf: (consumer) => (consumer === 'rome' ? [rome.publicKey] : (users.get(consumer) ?? [])),
  });
  let calls = 0;
  const ask = async (authorization: MaybeToken, to = target, method = 'CONNECT') =>
    authorizer.authorize({ method, target: to, authorization: await authorization, from: `192.0.2.${calls++ % 250}` });
  return { authorizer, clock, ask };
}

export type MaybeToken = string | undefined | Promise<string>;

let serial = 0;
export const claims = (change: Partial<ProxyClaims> = {}): Omit<ProxyClaims, 'exp'> => ({
  iss: 'rome',
  aud: 'milan',
  iat: start / 1000,
  jti: `jti-${++serial}`,
  nonce,
  ...change,
});
export const token = async (change: Partial<ProxyClaims> = {}, key = rome.privateKey) =>
  `Bearer ${await signProxyToken(claims(change), key)}`;
const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
export function crafted(header: object, body: object, signature: (signed: string) => Uint8Array): string {
  const signed = `${encoded(header)}.${encoded(body)}`;
  return `Bearer ${signed}.${Buffer.from(signature(signed)).toString('base64url')}`;
}
export const byRome = (signed: string) => sign(null, Buffer.from(signed), rome.privateKey);
export const eddsa = { alg: 'EdDSA', typ: 'JWT' };
export const lasting = { ...claims(), exp: start / 1000 + 60 };
