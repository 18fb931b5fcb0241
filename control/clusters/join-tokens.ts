/** Join tokens: one use, fifteen minutes, stored as a hash. */
import { AppError } from '#shared/errors/app-error.ts';
import type { JoinToken } from '#shared/schema/protocol/agent-identity.ts';
import { sha256Hex } from '../access/secrets.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { Item, Op } from '../ports/store.ts';
import { key } from '../store/keys.ts';

export const joinTokenLifeMs = 15 * 60_000;
/** Afterwards a token is unknown rather than used or expired. */
const rememberedMs = 24 * 3_600_000;

export interface JoinTokenRecord {
  readonly clusterId: string;
  readonly createdBy: string;
  readonly expiresAt: number;
  /** A joined cluster may enrol with another key, without a proof of the one before. */
  readonly replacesKey?: true;
  readonly usedAt?: number;
  /** Thumbprint of the key that was enrolled with it. */
  readonly usedBy?: string;
}

export const tokenText = (token: JoinToken): string =>
  `isthmus1.${Buffer.from(JSON.stringify(token)).toString('base64url')}`;

export const putToken = (tenant: string, secret: string, record: JoinTokenRecord): Op => ({
  op: 'put',
  ...key.joinToken(tenant, sha256Hex(secret)),
  value: record,
  expiresAt: record.expiresAt + rememberedMs,
});

export interface PresentedToken {
  readonly tenant: string;
  readonly secret: string;
  readonly clusterId: string;
  readonly thumbprint: string;
}

/** The stored token, good to be spent, or spent before by this very key. Anything else is refused. */
export async function findToken(
  { store, clock }: Pick<ControlDeps, 'store' | 'clock'>,
  { tenant, secret, clusterId, thumbprint }: PresentedToken,
  signal?: AbortSignal,
): Promise<Item<JoinTokenRecord>> {
  const { pk, sk } = key.joinToken(tenant, sha256Hex(secret));
  const item = await store.get<JoinTokenRecord>(pk, sk, signal);
  if (!item)
    throw new AppError('join_token_unknown', 'this broker did not issue the join token, or more than a day ago');
  const { value } = item;
  if (value.clusterId !== clusterId) {
    throw new AppError('join_token_unknown', `the join token is for cluster ${value.clusterId}, not for ${clusterId}`);
  }
  if (value.usedAt !== undefined) {
    if (value.usedBy === thumbprint) return item;
    throw new AppError('join_token_used', `the join token was used at ${new Date(value.usedAt).toISOString()}`);
  }
  if (value.expiresAt <= clock.now()) {
    throw new AppError('join_token_expired', `the join token expired at ${new Date(value.expiresAt).toISOString()}`);
  }
  return item;
}

export const spendToken = (item: Item<JoinTokenRecord>, thumbprint: string, now: number): Op => ({
  op: 'update',
  pk: item.pk,
  sk: item.sk,
  ifVersion: item.version,
  value: { ...item.value, usedAt: now, usedBy: thumbprint },
  expiresAt: item.value.expiresAt + rememberedMs,
});
