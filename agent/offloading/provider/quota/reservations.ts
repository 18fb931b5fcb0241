/**
 * Pods that were admitted a moment ago and that the cache does not show yet: few, however many there are. Kept by this replica only: two replicas that admit for one
 * user at the same instant can each miss what the other one just let in, for as long as the watch takes to tell them.
 */
import type { Amounts } from '#shared/domain/pod-resources.ts';

interface Reservation {
  readonly user: string;
  readonly amounts: Amounts;
  readonly expiresAt: number;
}

/** An admitted object is stored within the deadline of its request or never. */
const lifetimeMs = 10_000;

export class Reservations {
  readonly #byKey = new Map<string, Reservation>();

  /** A repeated attempt for the same object takes the place of the first. */
  add(key: string, user: string, amounts: Amounts, now: number): void {
    for (const [old, { expiresAt }] of this.#byKey) if (expiresAt <= now) this.#byKey.delete(old);
    this.#byKey.set(key, { user, amounts, expiresAt: now + lifetimeMs });
  }

  /** The cache has shown the object, or that it was deleted: from now on it says what the object takes. */
  drop(key: string): void {
    this.#byKey.delete(key);
  }

  /** What is reserved for `user` and not yet shown by the cache. Take it before listing: a list may be older than what it misses. */
  unseen(user: string, now: number): ReadonlyMap<string, Amounts> {
    const waiting = [...this.#byKey].filter(([, r]) => r.user === user && r.expiresAt > now);
    return new Map(waiting.map(([key, { amounts }]) => [key, amounts]));
  }
}
