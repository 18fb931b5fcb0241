/** Long polls: an answer as soon as a condition holds, or the state as it is when the time is up. */

import * as z from 'zod';
import type { Clock } from '#shared/ports/clock.ts';
import type { Composition, Listening } from './composition.ts';
import { fraction } from './queries.ts';

/** API Gateway ends a request after 30 s; 25 leave room for the answer. */
const maxWaitSeconds = 25;

export const Wait = fraction(z.number().min(0).max(maxWaitSeconds))
  .optional()
  .describe(
    `Seconds to wait for the outcome, at most ${maxWaitSeconds}. The answer is the state reached by then, or sooner where the broker waits less. Each second of waiting counts as a request; at the limit of the tenant the answer is the state as it is.`,
  );

/** A waiting request is metered this often. */
const stepMs = 1_000;
/** Bounds what is not heard of, as that an item expired. Looking each second would cost the broker one read a second for each waiting request. */
const lookAgainMs = 5_000;

export interface Waiting<T> {
  readonly look: () => Promise<T>;
  readonly done: (value: T) => boolean;
  readonly seconds: number | undefined;
  /** Of this broker: a proxy in front of it may cut what takes longer. */
  readonly longestWaitSeconds?: number | undefined;
  readonly tenant: string;
  /** What `look` reads, by the names of `control/events/changes.ts`. */
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly listen: Composition['listen'];
  readonly signal: AbortSignal;
}

export async function waitUntil<T>(waiting: Waiting<T>): Promise<T> {
  const { look, done, seconds = 0, clock, signal } = waiting;
  const listening = seconds > 0 ? begin(waiting) : undefined;
  if (listening === undefined) return look();
  const deadline = clock.now() + Math.min(seconds, waiting.longestWaitSeconds ?? maxWaitSeconds) * 1_000;
  try {
    let at = clock.now();
    let value = await look();
    for (;;) {
      const left = deadline - clock.now();
      if (left <= 0 || done(value)) return value;
      const heard = await listening.changed(Math.min(left, stepMs), signal).catch(() => undefined);
      if (heard === undefined) return value;
      if (!heard && clock.now() - at < lookAgainMs) continue;
      at = clock.now();
      value = await look();
    }
  } finally {
    listening.end();
  }
}

/** Listening begins before the first look, so that no change in between is missed. Undefined where it is refused: the answer is the state as it is. */
function begin<T>({ listen, tenant, names }: Waiting<T>): Listening | undefined {
  try {
    return listen(tenant, names);
  } catch {
    return undefined;
  }
}
