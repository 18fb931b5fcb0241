/** Ends something that has gone silent or takes too long, with one pending sleep however often it shows life. */
import { after, type Clock } from '#shared/ports/clock.ts';

export interface Limits {
  readonly totalMs?: number;
  readonly idleMs: number;
}

export interface Watchdog {
  /** Activity: restarts the idle limit. */
  touch(): void;
  stop(): void;
}

/** Calls `expire` once, with the limit that was passed, unless stopped before. */
export function watchdog(clock: Clock, limits: Limits, expire: (limitMs: number) => void): Watchdog {
  const started = clock.now();
  let touched = started;
  let cancel = (): void => undefined;
  const look = (): void => {
    const idleLeft = touched + limits.idleMs - clock.now();
    const totalLeft = started + (limits.totalMs ?? Number.POSITIVE_INFINITY) - clock.now();
    if (idleLeft <= 0) expire(limits.idleMs);
    else if (totalLeft <= 0) expire(limits.totalMs ?? 0);
    else cancel = after(clock, Math.min(idleLeft, totalLeft), look);
  };
  look();
  return {
    touch: () => {
      touched = clock.now();
    },
    stop: () => cancel(),
  };
}
