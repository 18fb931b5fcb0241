/**
 * Entries about objects that an informer's cache does not show yet: a map with a deadline for each entry. The lifetime is one and the same, so
 * insertion order is deadline order and each write drops the expired ones from the front: O(1) amortised, and never more than was written in one lifetime.
 */
interface Entry<V> {
  readonly value: V;
  readonly until: number;
}

export class PendingEntries<V> {
  readonly #entries = new Map<string, Entry<V>>();
  readonly #lifetimeMs: number;

  constructor(lifetimeMs: number) {
    this.#lifetimeMs = lifetimeMs;
  }

  /** Takes the place of an older entry of that key. `now`: of one clock, in milliseconds. */
  set(key: string, value: V, now: number): void {
    this.#expire(now);
    this.#entries.delete(key);
    this.#entries.set(key, { value, until: now + this.#lifetimeMs });
  }

  get(key: string, now: number): V | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.until > now ? entry.value : undefined;
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  /** In the order of writing. */
  list(now: number): readonly (readonly [key: string, value: V])[] {
    this.#expire(now);
    // A clock that was set back can leave expired entries behind younger ones.
    return [...this.#entries].filter(([, { until }]) => until > now).map(([key, { value }]) => [key, value] as const);
  }

  /** Entries held, expired ones that no write has dropped yet included. */
  get size(): number {
    return this.#entries.size;
  }

  #expire(now: number): void {
    for (const [key, { until }] of this.#entries) {
      if (until > now) return;
      this.#entries.delete(key);
    }
  }
}
