/**
 * What everyone who uses one connection knows together: whether its API server answers, and the moment at which it does again. Each waits out a
 * back-off of its own, so that a dead server is asked now and then by one of them; what that one learns, all learn.
 */
import type { Clock } from '#shared/ports/clock.ts';
import type { ClusterConnection } from './connection.ts';

/** Who fails for less while others succeed has a trouble of its own, and goes on waiting. */
const shortestOutageMs = 1_000;
/** After less TCP has sent again what was lost, and who waits may only wait for a server that is busy. */
const lossyOutageMs = 5_000;
/** Who has waited for so long at the end of an outage has not just asked. */
const lostAfterMs = 1_000;

/** Called with the moment from which on nobody had got an answer. */
export type Returned = (deafSince: number) => void;

export class OutageTracker {
  #deafSince: number | undefined;
  readonly #waiting = new Set<Returned>();

  /** Something came back, whatever it says. */
  answered(now: number): void {
    const since = this.#deafSince;
    if (since === undefined) return;
    this.#deafSince = undefined;
    if (now - since < shortestOutageMs) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake(since);
  }

  /** Nothing came back: refused, broken off, silent. */
  failed(now: number): void {
    this.#deafSince ??= now;
  }

  /** Calls back once, when the server answers again after an outage; returns how to wait no longer. */
  onReturn(wake: Returned): () => void {
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }
}

/** Whether what was sent in an outage that is over now may have been lost in it. */
export const isLossy = (deafSince: number, now: number): boolean => now - deafSince >= lossyOutageMs;

/**
 * Calls `giveUp` when the server answers others after a long outage while a request that begins now waits: TCP sends again what was lost after
 * a pause that grew with the outage, and asking anew takes a moment. Returns how to watch no longer.
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

/** Remembers on which line `error` happened. */
export function happenedOn<E extends Error>(line: OutageTracker, error: E): E {
  broken.set(error, line);
  return error;
}

/** The line whose failure `error`, or what caused it, tells of. */
export function lineBehind(error: unknown): OutageTracker | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const line = broken.get(at);
    if (line !== undefined) return line;
  }
  return undefined;
}
