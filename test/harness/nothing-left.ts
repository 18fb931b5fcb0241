/** Set-up of test files that share a process and the API servers of the pool: a file that leaves a connection or a program behind fails. */
import { afterAll } from 'vitest';
import { endLeases } from './api-server-pool/lease.ts';
import { connections, leftBehind } from './left-behind.ts';

/** The real one: a test may have put its own in its place. */
const { setTimeout } = globalThis;
/** Longer than the 10 s that a request to an API server may take: one that was under way when its controller was stopped comes to its end. */
const withinMs = 15_000;
const everyMs = 20;
/** A longer wait is told, with what was waited for. */
const usualMs = 2_000;

afterAll(async () => {
  const began = performance.now();
  let told = false;
  for (;;) {
    const left = leftBehind(process.getActiveResourcesInfo());
    if (left === '') break;
    // The leases go on: a forgotten controller must not write to the server of the next file.
    const waitedMs = performance.now() - began;
    if (waitedMs > usualMs && !told) console.log(`after its last test this file still has ${left} (${connections()})`);
    told ||= waitedMs > usualMs;
    if (waitedMs > withinMs)
      throw new Error(`${withinMs / 1_000} s after its last test this file still has ${left} (${connections()})`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  endLeases();
});
