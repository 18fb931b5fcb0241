/** Waiting before another attempt: full jitter, so that writers that collided do not collide again. */
import type { Clock } from '#shared/ports/clock.ts';

/** Resolves when attempt number `attempt` (1 is the first repetition) may begin; rejects when the signal aborts. */
export type Backoff = (attempt: number, signal?: AbortSignal) => Promise<void>;

const firstMs = 20;
const longestMs = 2_000;

/** `random` gives numbers from 0 to 1. */
export const jitteredBackoff =
  (clock: Clock, random: () => number): Backoff =>
  (attempt, signal) =>
    clock.sleep(Math.ceil(random() * Math.min(longestMs, firstMs * 2 ** attempt)), signal);
