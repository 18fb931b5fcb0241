/** The key pair of a cluster, as far as others may know it. */
import { createHash, createPublicKey } from 'node:crypto';
import type { KubeClient } from '#cli/cluster/open.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { authenticationKeysSecret, keyFields, systemNamespace } from '#shared/domain/liqo-keys.ts';

/** How people and annotations name a key: `sha256:` and the hex digest of its SubjectPublicKeyInfo. */
export const fingerprintOf = (spki: Uint8Array): string => `sha256:${createHash('sha256').update(spki).digest('hex')}`;

export interface OwnKey {
  readonly fingerprint: string;
  /** RFC 7638, by which the broker names a key; absent for a kind of key other than Ed25519. */
  readonly thumbprint?: string;
  /** The former key signed this one. */
  readonly isSuccessor: boolean;
}

/** Undefined: the cluster has no pair yet. */
export async function ownKeyOf(kube: Pick<KubeClient, 'get'>): Promise<OwnKey | undefined> {
  const secret = await kube.get(secrets, { namespace: systemNamespace, name: authenticationKeysSecret });
  const pem = secret?.data?.publicKey;
  if (pem === undefined) return undefined;
  const key = createPublicKey(Buffer.from(pem, 'base64').toString());
  const isSuccessor = secret?.data?.[keyFields.succession] !== undefined;
  const spki = key.export({ type: 'spki', format: 'der' });
  const fingerprint = fingerprintOf(spki);
  if (key.asymmetricKeyType !== 'ed25519') return { isSuccessor, fingerprint };
  const { crv, kty, x } = key.export({ format: 'jwk' });
  const thumbprint = createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url');
  return { isSuccessor, fingerprint, thumbprint };
}
