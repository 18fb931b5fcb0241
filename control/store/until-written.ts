/** Optimistic concurrency: reads, decides and writes again until no other writer came in between. */
import { codeOf } from '#shared/errors/app-error.ts';

/** Two looks at once conflict at most once each; many peerings of one cluster contend for its revision. */
const maxAttempts = 25;

/** Runs `work` again while it meets version conflicts: it must read everything it decides on again each time. */
export async function untilWritten<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (codeOf(error) !== 'version_conflict' || attempt === maxAttempts) throw error;
    }
  }
}
