/** The real clock of the broker. */
import type { Clock } from '#shared/ports/clock.ts';

/** What a timer can hold. */
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const stop = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(
        () => {
          signal?.removeEventListener('abort', stop);
          resolve();
        },
        Math.min(ms, longestTimerMs),
      );
      signal?.addEventListener('abort', stop, { once: true });
    }),
};
