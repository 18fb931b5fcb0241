/** Transfers whose connection everybody on its way is made to forget, again and again. */
import type { Netns, Transfer } from '../../../harness/netns.ts';

export interface Attempt {
  readonly start: (bytes: number) => Promise<Transfer>;
  /** How much has come so far, of this and of earlier transfers. */
  readonly carried: () => Promise<number>;
  readonly places: readonly Netns[];
}

const leastFlushes = 3;
const mostBytes = 2_000_000_000;

/**
 * Grows until the transfer lasts for a few losses of memory: how fast it is, and how fast those are, is up to the machine. A transfer fails when no byte
 * has come for 10 s.
 */
export async function outlives(attempt: Attempt, firstBytes: number): Promise<void> {
  for (let bytes = firstBytes; ; bytes *= 3) {
    const { flushes, seconds } = await transferred(attempt, bytes);
    if (flushes >= leastFlushes) return;
    if (bytes > mostBytes) throw new Error(`${bytes} bytes came in ${seconds} s, within ${flushes} losses of memory`);
  }
}

async function transferred({ start, carried, places }: Attempt, bytes: number) {
  const before = await carried();
  let flushes = 0;
  let over = false;
  const watched = start(bytes).finally(() => {
    over = true;
  });
  watched.catch(() => undefined);
  // A connection that ends in the very moment is another matter: conntrack takes no FIN for the beginning of anything.
  while (!over && (await carried()) - before < 0.8 * bytes) {
    for (const place of places) await place.exec('conntrack', '-F');
    if (!over) flushes += 1;
  }
  return { flushes, seconds: (await watched).seconds };
}
