/** Delays that double from `baseMs` to `maxMs`. Chance may shorten each, so that many waiters do not move in step. */
export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
  /** In [0, 1); a port so that histories replay. Absent: nothing is shortened, for pauses that users are told about. */
  readonly random?: Random;
  /** The part of the delay that chance leaves, in [0, 1]. Default 0.5; 0 spreads those that collided as far as can be ("full jitter"). */
  readonly leastPart?: number;
}

export type Random = () => number;

/** The delay after the `failures`-th failure in a row (1 for the first): base·2^(failures-1), or with `random` between `leastPart` and all of it. */
export function backoffMs(failures: number, { baseMs, maxMs, random, leastPart = 0.5 }: BackoffOptions): number {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 40));
  return random === undefined ? full : Math.round(full * leastPart + full * (1 - leastPart) * random());
}
