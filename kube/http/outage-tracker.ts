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
export type Returned = (deafSince: number) => void;

export class OutageTracker {
  #deafSince: number | undefined;
  readonly #waiting = new Set<Returned>();

  /** An answer has come, with any status. */
  answered(now: number): void {
    const since = this.#deafSince;
    if (since === undefined) return;
    this.#deafSince = undefined;
    if (now - since < shortestOutageMs) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake(since);
  }

  /** No answer came: refused, broken off, silent. */
  failed(now: number): void {
    this.#deafSince ??= now;
  }

  /** Calls back once, when the server answers again after an outage; returns the unsubscribe function. */
  onReturn(wake: Returned): () => void {
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }
}

/** Whether what was sent in an outage that is over now may have been lost in it. */
export const isLossy = (deafSince: number, now: number): boolean => now - deafSince >= lossyOutageMs;

/**
 * Calls `giveUp` when the server answers others after a long outage while a request that begins now waits: TCP retransmits after a pause that grew
 * with the outage, and sending the request again takes a moment. Returns the unsubscribe function.
 */
export function whenLeftBehind(line: OutageTracker, clock: Pick<Clock, 'now'>, giveUp: () => void): () => void {
  const startedAt = clock.now();
  return line.onReturn((deafSince) => {
    const now = clock.now();
    if (isLossy(deafSince, now) && now - startedAt >= lostAfterMs) giveUp();
  });
}

const lines = new WeakMap<ClusterConnection, OutageTracker>();

export function lineOf(connection: ClusterConnection): OutageTracker {
  let line = lines.get(connection);
  if (line === undefined) {
    line = new OutageTracker();
    lines.set(connection, line);
  }
  return line;
}

const broken = new WeakMap<Error, OutageTracker>();

/** Remembers the outage tracker of the connection on which `error` happened. */
export function happenedOn<E extends Error>(line: OutageTracker, error: E): E {
  broken.set(error, line);
  return error;
}

/** The outage tracker of the connection whose failure `error`, or its cause, reports. */
export function lineBehind(error: unknown): OutageTracker | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const line = broken.get(at);
    if (line !== undefined) return line;
  }
  return undefined;
}
