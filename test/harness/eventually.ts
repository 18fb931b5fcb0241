/**
 * Waits for a condition with a deadline, and says what was last seen when the deadline passes. Deadlines go by the monotonic clock: a virtual machine that was
 * suspended finds the time of day minutes later.
 */

export interface EventuallyOptions {
  readonly withinMs?: number;
  /** Between two looks; as long as the last look took where that is longer, so that looking leaves processor time to what is looked for. */
  readonly everyMs?: number;
}

/** Resolves with the first value of `look` that is neither undefined, null nor false. Errors of `look` count as "not yet". */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  { withinMs = 45_000, everyMs = 100 }: EventuallyOptions = {},
): Promise<T> {
  const deadline = performance.now() + withinMs;
  let last: unknown;
  for (;;) {
    const began = performance.now();
    try {
      const value = await look();
      if (value !== undefined && value !== null && value !== false) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    if (performance.now() >= deadline) {
      const seen = last instanceof Error ? last.message : JSON.stringify(last);
      throw new Error(`not within ${withinMs / 1000} s: ${what}; last seen: ${seen}`);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(everyMs, performance.now() - began)));
  }
}
