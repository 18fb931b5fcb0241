/** Whether a cluster that has joined may come with another key: by the proof of the key before, or by a token that was made for that. */
import { createHash, createPublicKey, verify } from 'node:crypto';
import { keySuccessionText } from '#shared/domain/key-succession.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ClusterRecord, PublicJwk } from '../model/cluster.ts';
import type { JoinTokenRecord } from './join-tokens.ts';

export interface KeyChange {
  readonly before: ClusterRecord | undefined;
  readonly publicKey: PublicJwk;
  readonly keyThumbprint: string;
  /** base64; by the key before. */
  readonly succession: string | undefined;
  readonly token: JoinTokenRecord;
}

/** How the change is allowed; undefined: there is none. Fails with `cluster_key_known` for a joined cluster without either. */
export function mayChangeKey(change: KeyChange): 'succession' | 'replacement' | undefined {
  const { before, keyThumbprint, token } = change;
  if (before?.state !== 'joined' || before.keyThumbprint === keyThumbprint) return undefined;
  if (isSucceeded(change, before.publicKey)) return 'succession';
  if (token.replacesKey) return 'replacement';
  throw new AppError('cluster_key_known', `cluster ${before.id} has joined with another key`, {
    detail: { cluster: before.id, keyThumbprint: before.keyThumbprint },
  });
}

function isSucceeded({ publicKey, succession }: KeyChange, former: PublicJwk): boolean {
  if (succession === undefined) return false;
  const [next, known] = [publicKey, former].map((jwk) => createPublicKey({ key: { ...jwk }, format: 'jwk' }));
  if (!next || !known) return false;
  const digest = createHash('sha256')
    .update(next.export({ type: 'spki', format: 'der' }))
    .digest('hex');
  return verify(null, Buffer.from(keySuccessionText(`sha256:${digest}`)), known, Buffer.from(succession, 'base64'));
}
