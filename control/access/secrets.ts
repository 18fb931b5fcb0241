/** Secrets that the broker hands out and keeps only as hashes: 256 random bits each, so a plain SHA-256 is enough. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Ids } from '#shared/ports/ids.ts';

export const newSecret = (ids: Ids): string => Buffer.from(ids.bytes(32)).toString('base64url');

export const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex');

/** In constant time for equally long strings. */
export function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
