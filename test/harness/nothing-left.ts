/** Set-up of test files that share a process and the API servers of the pool: a file that leaves a connection or a program behind fails. */
import { afterAll } from 'vitest';
import { endLeases } from './api-server-pool/lease.ts';
import { connections, leftBehind } from './left-behind.ts';

/** The real one: a test may have put its own in its place. */
const { setTimeout } = globalThis;
/** Longer than the 10 s that a request to an API server may take: one that was under way when its controller was stopped comes to its end. */
const withinMs = 15_000;
/** A longer wait is told, with what was waited for. */
const usualMs = 2_000;
const everyMs = 20;

/** What is still there after so long; empty as soon as nothing is. */
async function leftAfter(ms: number): Promise<string> {
  const deadline = performance.now() + ms;
  for (;;) {
    const left = leftBehind(process.getActiveResourcesInfo());
    if (left === '') return '';
    if (performance.now() > deadline) return `${left} (${connections()})`;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

afterAll(async () => {
  const late = await leftAfter(usualMs);
  if (late !== '') {
    console.log(`after its last test this file still has ${late}`);
    const left = await leftAfter(withinMs - usualMs);
    // The leases go on: a forgotten controller must not write to the server of the next file.
    if (left !== '') throw new Error(`${withinMs / 1_000} s after its last test this file still has ${left}`);
  }
  endLeases();
});
