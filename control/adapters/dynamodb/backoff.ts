/** Waiting before another attempt: full jitter, so that writers that collided do not collide again. */
import { backoffMs, type Random } from '#shared/async/backoff.ts';
import type { Clock } from '#shared/ports/clock.ts';

/** Resolves when attempt number `attempt` (1 is the first repetition) may begin; rejects when the signal aborts. */
export type Backoff = (attempt: number, signal?: AbortSignal) => Promise<void>;

const limits = { baseMs: 40, maxMs: 2_000, leastPart: 0 } as const;

export const jitteredBackoff =
  (clock: Clock, random: Random): Backoff =>
  (attempt, signal) =>
    clock.sleep(backoffMs(attempt, { ...limits, random }), signal);
