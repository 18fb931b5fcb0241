/** Rate limits by key in bounded memory: each key may spend `burst` at once and `perSecond` from then on. Pure. */

export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

interface Bucket {
  left: number;
  at: number;
}

export class TokenBuckets {
  readonly #rate: Rate;
  readonly #most: number;
  /** Least recently used first. */
  readonly #buckets = new Map<string, Bucket>();

  /** Of more than `most` keys at a time the least recently used starts afresh. */
  constructor(rate: Rate, most: number) {
    this.#rate = rate;
    this.#most = most;
  }

  /** False: nothing is left for this key. */
  take(key: string, nowMs: number): boolean {
    const { burst, perSecond } = this.#rate;
    const known = this.#buckets.get(key) ?? { left: burst, at: nowMs };
    const left = Math.min(burst, known.left + (Math.max(0, nowMs - known.at) / 1000) * perSecond);
    this.#buckets.delete(key);
    this.#buckets.set(key, { left: left >= 1 ? left - 1 : left, at: nowMs });
    if (this.#buckets.size > this.#most) this.#buckets.delete(this.#buckets.keys().next().value as string);
    return left >= 1;
  }
}
