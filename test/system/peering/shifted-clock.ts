/** Real time that a test can push forward: real servers keep their pace, waits of the code under test end early. */
import type { Clock } from '#shared/ports/clock.ts';

export class ShiftedClock implements Clock {
  #shiftMs = 0;
  readonly #sleepers = new Set<{ readonly at: number; readonly wake: () => void }>();

  now(): number {
    return Date.now() + this.#shiftMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener('abort', abort);
        settle();
      };
      const abort = (): void => end(() => reject(signal?.reason));
      const sleeper = { at: this.now() + ms, wake: () => end(resolve) };
      const timer = setTimeout(() => end(resolve), Math.min(ms, 2 ** 31 - 1));
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  advance(ms: number): void {
    this.#shiftMs += ms;
    for (const sleeper of [...this.#sleepers]) if (sleeper.at <= this.now()) sleeper.wake();
  }
}
