/** Set-up of test files that share a process: work that goes on after its file takes processor time from every file that follows. */
import { afterAll } from 'vitest';

/** The real one: a test may have put its own in its place. */
const { setTimeout } = globalThis;
const withinMs = 5_000;
const everyMs = 20;
/** What a file leaves when it reads, or takes turns of the event loop, without an end. Sockets and listeners that nothing moves cost nothing. */
const isWork = (kind: string): boolean => /^(?:FSReq|Immediate)/.test(kind);

afterAll(async () => {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const left = process.getActiveResourcesInfo().filter(isWork);
    if (left.length === 0) return;
    if (performance.now() > deadline)
      throw new Error(`${withinMs / 1_000} s after its last test this file still works: ${left.join(', ')}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
});
