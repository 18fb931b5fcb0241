/**
 * What a cluster says of itself to one peer: everything that decides where the peer sends credentials, packets, Secrets and pods. A compact JWS (RFC
 * 7515), EdDSA by the cluster's own key, with a type of its own: no request to a broker and no token of a proxy is one, nor the other way
 * around. The broker carries it and cannot make or change it. Pure.
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import * as z from 'zod';
import { fingerprintOf } from '#agent/pki/cluster-keys.ts';
import { ClusterId, longestAnnouncement } from '#shared/schema/protocol/agent-protocol.ts';

const type = 'isthmus-announcement+jws';
const ranges = z.array(z.string().max(64)).max(32);
const base64 = z.string().max(1_024);

const Claims = z.strictObject({
  purpose: z.literal('peering'),
  sender: ClusterId,
  receiver: ClusterId,
  /** The sender's account at the broker. */
  tenant: z.string().min(1).max(253),
  /** Version, in milliseconds since the epoch: a receiver never goes back to an older one. */
  at: z.int().min(0),
  /** SubjectPublicKeyInfo of the sender. */
  key: base64,
  /** The former key of the sender signs this one. */
  succession: base64.optional(),
  /** Lock keys of administrators sign `key` for this account and cluster. */
  locks: z
    .array(z.strictObject({ key: base64, at: z.int().min(0), signature: base64 }))
    .max(8)
    .optional(),
  apiServer: z.string().max(2_048),
  /** Hex SHA-256 of the PEM bundle. */
  caHash: z.string().regex(/^[0-9a-f]{64}$/),
  /** Absent: the sender makes no links. */
  network: z.strictObject({ pod: ranges, external: ranges, apiServerProxy: z.string().max(64).optional() }).optional(),
  /** base64, of the sender's gateway to the receiver. Absent: there is none yet. */
  wireGuardKey: z.string().max(44).optional(),
});
export type Claims = z.infer<typeof Claims>;

export interface Announcement {
  readonly claims: Claims;
  readonly key: KeyObject;
  readonly fingerprint: string;
}

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export const caHashOf = (pem: string): string => createHash('sha256').update(pem).digest('hex');

export function signAnnouncement(claims: Claims, privateKey: KeyObject): string {
  const text = `${encoded({ alg: 'EdDSA', typ: type })}.${encoded(claims)}`;
  return `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`;
}

/** Undefined: none, or not signed by the key that it names. A valid one says nothing yet of whose key that is. */
export function readAnnouncement(text: string): Announcement | undefined {
  if (text.length > longestAnnouncement || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(text)) return undefined;
  const [head = '', body = '', signature = ''] = text.split('.');
  if (head !== encoded({ alg: 'EdDSA', typ: type })) return undefined;
  try {
    const claims = Claims.parse(JSON.parse(Buffer.from(body, 'base64url').toString('utf8')));
    const key = createPublicKey({ key: Buffer.from(claims.key, 'base64'), format: 'der', type: 'spki' });
    if (key.asymmetricKeyType !== 'ed25519') return undefined;
    const isSigned = verify(null, Buffer.from(`${head}.${body}`), key, Buffer.from(signature, 'base64url'));
    return isSigned ? { claims, key, fingerprint: fingerprintOf(key) } : undefined;
  } catch {
    // No JSON, no announcement, or no key.
    return undefined;
  }
}
