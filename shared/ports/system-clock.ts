/** The real clock. */
import type { Clock } from './clock.ts';

/** What a timer can hold; longer sleeps are cut into pieces. */
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    for (let left = ms; ; left -= longestTimerMs) {
      await nap(Math.min(left, longestTimerMs), signal);
      if (left <= longestTimerMs) return;
    }
  },
  after(ms, work) {
    let timer: ReturnType<typeof setTimeout>;
    const arm = (left: number): void => {
      timer = setTimeout(
        () => (left > longestTimerMs ? arm(left - longestTimerMs) : work()),
        Math.min(left, longestTimerMs),
      );
    };
    arm(ms);
    return () => clearTimeout(timer);
  },
};

const nap = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
