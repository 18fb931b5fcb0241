/**
 * Outage state that all users of one connection share: whether its API server answers, and the moment at which it does again. Each user waits out a
 * back-off of its own, so that a dead server is asked now and then by one of them; its first answer wakes them all.
 */
import type { Clock } from '#shared/ports/clock.ts';
import type { ClusterConnection } from './connection.ts';

/** A client that fails for less than this while others succeed has a fault of its own, and keeps its back-off. */
const shortestOutageMs = 1_000;
/** In a shorter outage TCP has already retransmitted what was lost, and a waiting request may only wait for a busy server. */
const lossyOutageMs = 5_000;
/** A request that has waited this long at the end of an outage was sent during the outage. */
const lostAfterMs = 1_000;

/** Called with the moment of the first failure of the outage. */
export type Returned = (silentSince: number) => void;

export class OutageTracker {
  #silentSince: number | undefined;
  readonly #waiting = new Set<Returned>();

  /** An answer has come, with any status. */
  answered(now: number): void {
    const since = this.#silentSince;
    if (since === undefined) return;
    this.#silentSince = undefined;
    if (now - since < shortestOutageMs) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake(since);
  }

  /** No answer came: refused, broken off, silent. */
  failed(now: number): void {
    this.#silentSince ??= now;
  }

  /** Calls back once, when the server answers again after an outage; returns the unsubscribe function. */
  onReturn(wake: Returned): () => void {
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }
}

/** Whether what was sent in an outage that is over now may have been lost in it. */
export const isLossy = (silentSince: number, now: number): boolean => now - silentSince >= lossyOutageMs;

/**
 * Calls `giveUp` when the server answers others after a long outage while a request that begins now waits: TCP retransmits after a pause that grew
 * with the outage, and sending the request again takes a moment. Returns the unsubscribe function.
 */
export function whenLeftBehind(tracker: OutageTracker, clock: Pick<Clock, 'now'>, giveUp: () => void): () => void {
  const startedAt = clock.now();
  return tracker.onReturn((silentSince) => {
    const now = clock.now();
    if (isLossy(silentSince, now) && now - startedAt >= lostAfterMs) giveUp();
  });
}

const trackers = new WeakMap<ClusterConnection, OutageTracker>();

export function outageTrackerOf(connection: ClusterConnection): OutageTracker {
  let tracker = trackers.get(connection);
  if (tracker === undefined) {
    tracker = new OutageTracker();
    trackers.set(connection, tracker);
  }
  return tracker;
}

const broken = new WeakMap<Error, OutageTracker>();

/** Remembers the outage tracker of the connection on which `error` happened. */
export function happenedOn<E extends Error>(tracker: OutageTracker, error: E): E {
  broken.set(error, tracker);
  return error;
}

/** The outage tracker of the connection whose failure `error`, or its cause, reports. */
export function outageTrackerBehind(error: unknown): OutageTracker | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const tracker = broken.get(at);
    if (tracker !== undefined) return tracker;
  }
  return undefined;
}
