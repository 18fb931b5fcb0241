import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { sharedByMany } from '../kube/linked-abort.ts';
import { nothing } from './fabric.ts';
import { createProgrammer } from './programmer.ts';

/** A namespace whose passes take 100 ms of the clock; time moves in steps of 5 ms. */
function start() {
  const clock = new ManualClock();
  const stopped = new AbortController();
  sharedByMany(stopped.signal);
  const startedAt = clock.now();
  const passes: number[] = [];
  const programmer = createProgrammer({
    namespace: {
      async apply() {
        passes.push(clock.now() - startedAt);
        await clock.sleep(100);
        return { wrote: [], failed: [], without: [], awaitsTunnel: false };
      },
      watchDrift: () => ({ stop: () => undefined }),
    },
    clock,
    log: silentLog,
    want: () => nothing,
  });
  const ended = programmer.run(stopped.signal);
  const advance = async (ms: number, each = (): void => undefined): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 5) {
      each();
      clock.advance(5);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return {
    programmer,
    passes,
    advance,
    async stop() {
      stopped.abort();
      await advance(200);
      await ended;
    },
  };
}

test('pods that come all the time take a sixth of the time of whoever programs for them, and the last of them is programmed, too', async () => {
  const { programmer, passes, advance, stop } = start();
  await advance(3_000);
  expect(passes).toHaveLength(1);
  await advance(6_000, () => programmer.wakeCalmly());
  const during = passes.slice(1);
  // The first at once, as after any quiet time.
  expect(during[0]).toBeLessThan(3_050);
  expect(during.length).toBeGreaterThanOrEqual(8);
  expect(during.length).toBeLessThanOrEqual(11);
  await advance(1_000);
  expect(passes.length).toBe(during.length + 2);
  await stop();
});

test('what concerns a link waits for no calm', async () => {
  const { programmer, passes, advance, stop } = start();
  await advance(3_000, () => programmer.wakeCalmly());
  const before = passes.length;
  const lastAt = passes.at(-1) ?? 0;
  await advance(Math.max(0, lastAt + 150 - 3_000));
  programmer.wakeCalmly();
  await advance(20);
  const waiting = passes.length;
  programmer.wake();
  await advance(50);
  expect([waiting - before, passes.length - before]).toEqual([0, 1]);
  await stop();
});
