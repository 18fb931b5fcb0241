/** Delays that double from `baseMs` to `maxMs`, each shortened by a random part so that many waiters do not move in step. */
export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
  /** In [0, 1); a port so that histories replay. */
  readonly random: () => number;
}

export type Random = () => number;

/** The delay after the `failures`-th failure in a row (1 for the first): between half and all of base·2^(failures-1). */
export function backoffMs(failures: number, { baseMs, maxMs, random }: BackoffOptions): number {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 40));
  return Math.round(full / 2 + (full / 2) * random());
}
