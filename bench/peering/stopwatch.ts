/** Notes when each of a list of things was first seen in a cluster, through watches, not polls. */
import type { Cache } from '#kube/model/types.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';

export interface Stopwatch {
  /** Resolves with the milliseconds since `start` at which some object of the cache first satisfied `test`. */
  first<T extends KubeObject>(cache: Cache<T>, test: (object: T) => boolean, what: string): Promise<number>;
}

export function startStopwatch(deadlineMs: number): Stopwatch {
  const started = performance.now();
  return {
    first: (cache, test, what) =>
      new Promise((resolve, reject) => {
        let seen = false;
        const timer = setTimeout(() => {
          if (seen) return;
          stop?.();
          reject(new Error(`not within ${deadlineMs / 1000} s: ${what}`));
        }, deadlineMs);
        let stop: (() => void) | undefined;
        stop = cache.subscribe(({ after }) => {
          if (seen || !after || !test(after)) return;
          seen = true;
          clearTimeout(timer);
          resolve(performance.now() - started);
          // Not from inside its own callback.
          queueMicrotask(() => stop?.());
        });
      }),
  };
}
