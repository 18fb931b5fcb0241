/**
 * Fair scheduling of long reads: SQLite answers without a pause, so that fifty long reads of one tenant would hold the event loop for as long as all
 * of them take. With more than one to do, each iteration of the event loop runs one, in a round robin over the partitions.
 */
import { FairQueue } from '#shared/async/fair-queue.ts';

export interface ReadTurns {
  /** Resolves when it is the turn of this partition: at once when no other read had one in this iteration. */
  take(partition: string): Promise<void>;
}

export function createReadTurns(): ReadTurns {
  const waiting = new FairQueue<() => void>();
  let taken = false;

  function next(): void {
    const resolve = waiting.first();
    if (resolve === undefined) {
      taken = false;
      return;
    }
    waiting.delete(resolve);
    setImmediate(next);
    resolve();
  }

  return {
    async take(partition) {
      if (taken) return new Promise<void>((resolve) => waiting.add(partition, resolve));
      taken = true;
      setImmediate(next);
    },
  };
}
