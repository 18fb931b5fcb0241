/** Delays that double from `baseMs` to `maxMs`. Chance may shorten each, so that many waiters do not move in step. */
export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
  /** In [0, 1); a port so that histories replay. Absent: nothing is shortened, for pauses that users are told about. */
  readonly random?: Random;
}

export type Random = () => number;

/** The delay after the `failures`-th failure in a row (1 for the first): base·2^(failures-1), or with `random` between half and all of it. */
export function backoffMs(failures: number, { baseMs, maxMs, random }: BackoffOptions): number {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 40));
  return random === undefined ? full : Math.round(full / 2 + (full / 2) * random());
}
