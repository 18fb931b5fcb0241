/** When a delivery is tried again, and when a webhook has failed for too long: data, and the arithmetic on it. */
import type { Ids } from '#shared/ports/ids.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** After the first failure, the second, and so on; after the last one the delivery is a dead letter. */
export const retryDelaysMs: readonly number[] = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  18 * hour,
  24 * hour,
];
/** So much longer or shorter at most, so that what failed together does not come back together. */
export const retryJitter = 0.2;
/** A receiver may ask for more patience than the schedule has, but not for more than this. */
export const longestRetryAfterMs = 24 * hour;
/** Without a single success for so long, a webhook is disabled. */
export const failingLimitMs = 5 * 24 * hour;

export const sendTimeoutMs = 10 * second;
/** Claim timeout, longer than an attempt may take: after it, another process takes over a delivery whose claimant crashed. */
export const claimMs = 30 * second;
export const deliveredKeptMs = 7 * 24 * hour;
export const deadKeptMs = 30 * 24 * hour;

/** Undefined: it was the last attempt. `failures` counts from 1. */
export function retryAfter(failures: number, ids: Pick<Ids, 'bytes'>, asked = 0): number | undefined {
  const planned = retryDelaysMs[failures - 1];
  if (planned === undefined) return undefined;
  const [a = 0, b = 0] = ids.bytes(2);
  const share = (a * 256 + b) / 65_535;
  const jittered = planned * (1 - retryJitter + 2 * retryJitter * share);
  return Math.round(Math.max(jittered, Math.min(asked, longestRetryAfterMs)));
}
