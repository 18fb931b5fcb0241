/**
 * Pods that were admitted a moment ago and that the cache does not show yet: few, however many there are. Kept by this replica only: two replicas that admit for one
 * user at the same instant can each miss what the other one just let in, for as long as the watch takes to tell them.
 *
 * These are claims and no own writes: the object has neither uid nor version yet, a later admission step can still refuse it, and its writer is the consumer. Of the
 * own-writes cache they share the entries with a deadline; any event of that name ends a claim.
 */
import { PendingEntries } from '#kube/cache/pending-entries.ts';
import type { Amounts } from '#shared/domain/pod-resources.ts';

interface Reservation {
  readonly user: string;
  readonly amounts: Amounts;
}

/** An admitted object is stored within the deadline of its request or never. */
const lifetimeMs = 10_000;

export class Reservations {
  readonly #claims = new PendingEntries<Reservation>(lifetimeMs);

  /** A repeated attempt for the same object takes the place of the first. */
  add(key: string, user: string, amounts: Amounts, now: number): void {
    this.#claims.set(key, { user, amounts }, now);
  }

  /** The cache has shown the object, or that it was deleted: from now on it says what the object takes. */
  drop(key: string): void {
    this.#claims.delete(key);
  }

  /** What is reserved for `user` and not yet shown by the cache. Take it before listing: a list may be older than what it misses. */
  unseen(user: string, now: number): ReadonlyMap<string, Amounts> {
    const claims = this.#claims.list(now).filter(([, claim]) => claim.user === user);
    return new Map(claims.map(([key, { amounts }]) => [key, amounts]));
  }
}
