/** Set-up of test files that share a process and the API servers of the pool: a file that leaves a connection or a program behind fails. */
import { afterAll } from 'vitest';
import { endLeases } from './api-server-pool/lease.ts';
import { leftBehind } from './left-behind.ts';

/** The real one: a test may have put its own in its place. */
const { setTimeout } = globalThis;
const withinMs = 5_000;
const everyMs = 20;

afterAll(async () => {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const left = leftBehind(process.getActiveResourcesInfo());
    if (left === '') break;
    // The leases go on: a forgotten controller must not write to the server of the next file.
    if (performance.now() > deadline)
      throw new Error(`${withinMs / 1_000} s after its last test this file still has ${left}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  endLeases();
});
