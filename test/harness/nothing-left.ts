/** Set-up of test files that share a process and its API servers of the pool: a file that leaves a connection or a program behind fails. */
import { afterAll } from 'vitest';
import { endLeases } from './api-server-pool/lease.ts';

/** The real one: a test may have put its own in its place. */
const { setTimeout } = globalThis;
const withinMs = 5_000;
const everyMs = 20;
/** What keeps a process alive, without what vitest itself has in each: pipes to its own process, and timers. */
const isLeft = (kind: string): boolean => !/^(?:Pipe|TTY|Timeout|Immediate)/.test(kind);

function inWords(kinds: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => `${count} of ${kind}`).join(', ');
}

afterAll(async () => {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const left = process.getActiveResourcesInfo().filter(isLeft);
    if (left.length === 0) break;
    // The leases go on: a forgotten controller must not write to the server of the next file.
    if (performance.now() > deadline)
      throw new Error(`${withinMs / 1_000} s after its last test this file still has ${inWords(left)}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  endLeases();
});
