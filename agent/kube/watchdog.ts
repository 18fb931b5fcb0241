/** Ends something that has gone silent or takes too long, with one pending sleep however often it shows life. */
import type { Clock } from '#shared/ports/clock.ts';

export interface Limits {
  readonly totalMs?: number;
  readonly idleMs: number;
}

export interface Watchdog {
  /** Something happened: the idle limit starts anew. */
  touch(): void;
  stop(): void;
}

/** Made once: an abort without a reason makes an exception with a stack, and there is a watchdog for each request. */
const ended = new Error('the watchdog was stopped');

/** Calls `expire` once, with the limit that was passed, unless stopped before. */
export function watchdog(clock: Clock, limits: Limits, expire: (limitMs: number) => void): Watchdog {
  const stopped = new AbortController();
  const started = clock.now();
  let touched = started;
  const run = async (): Promise<void> => {
    for (;;) {
      const idleLeft = touched + limits.idleMs - clock.now();
      const totalLeft = started + (limits.totalMs ?? Number.POSITIVE_INFINITY) - clock.now();
      if (idleLeft <= 0) return expire(limits.idleMs);
      if (totalLeft <= 0) return expire(limits.totalMs ?? 0);
      await clock.sleep(Math.min(idleLeft, totalLeft), stopped.signal);
    }
  };
  // Only `stop` rejects the sleep.
  run().catch(() => undefined);
  return {
    touch: () => {
      touched = clock.now();
    },
    stop: () => stopped.abort(ended),
  };
}
