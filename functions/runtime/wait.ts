/** Long polls: an answer as soon as a condition holds, or the state as it is when the time is up. */

import * as z from 'zod';
import { abortScope } from '#shared/async/abort-scope.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Composition } from './composition.ts';
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
/** Bounds what a lost hint can cost. Looking each second would cost the broker one read a second for each waiting request. */
const lookAgainMs = 5_000;

export interface Waiting<T> {
  readonly look: () => Promise<T>;
  readonly done: (value: T) => boolean;
  readonly seconds: number | undefined;
  /** Of this broker: a proxy in front of it may cut what takes longer. */
  readonly longestWaitSeconds?: number | undefined;
  readonly tenant: string;
  readonly clock: Clock;
  readonly untilChange: Composition['untilChange'];
  readonly signal: AbortSignal;
}

export async function waitUntil<T>(waiting: Waiting<T>): Promise<T> {
  const { look, done, tenant, clock, untilChange, signal } = waiting;
  const deadline = clock.now() + Math.min(waiting.seconds ?? 0, waiting.longestWaitSeconds ?? maxWaitSeconds) * 1_000;
  let seen: { readonly value: T; readonly at: number } | undefined;
  let mayHaveChanged = false;
  for (;;) {
    const passed = abortScope(signal);
    const left = Math.max(0, deadline - clock.now());
    // Listening starts before looking, so a change in between is not missed. Shutdown rejects it: answer with what is known.
    const change = untilChange(tenant, Math.min(left, stepMs), passed.signal)
      .catch(() => undefined)
      .finally(passed.unlink);
    if (seen === undefined || mayHaveChanged || clock.now() - seen.at >= lookAgainMs) {
      const at = clock.now();
      seen = { value: await look(), at };
    }
    if (left === 0 || done(seen.value)) {
      passed.abort();
      return seen.value;
    }
    const heard = await change;
    if (heard === undefined) return seen.value;
    mayHaveChanged = heard;
  }
}
