import { expect, test } from 'vitest';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { KernelState } from '../kernel/kernel-state.ts';
import { createNamespaceReconciler } from './namespace-reconciler.ts';
import { nothing } from './node-agent.ts';

/** Something else whenever it is asked for, as if each pod needed a route. */
function withPodsThatChange(): () => KernelState {
  let asked = 0;
  return () => {
    asked += 1;
    return { ...nothing, sysctls: { asked: String(asked) } };
  };
}

/** A namespace whose passes take 100 ms of the clock; time moves in steps of 5 ms. */
function start(want: () => KernelState = withPodsThatChange()) {
  const clock = new ManualClock();
  const stopped = new AbortController();
  sharedByMany(stopped.signal);
  const startedAt = clock.now();
  const passes: number[] = [];
  const reconciler = createNamespaceReconciler({
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
    want,
  });
  const ended = reconciler.run(stopped.signal);
  const advance = async (ms: number, each = (): void => undefined): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 5) {
      each();
      clock.advance(5);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return {
    reconciler,
    passes,
    advance,
    async stop() {
      stopped.abort();
      await advance(200);
      await ended;
    },
  };
}

test('constant pod churn costs one pass a second, and the last pod is programmed, too', async () => {
  const { reconciler, passes, advance, stop } = start();
  await advance(3_000);
  expect(passes).toHaveLength(1);
  await advance(6_000, () => reconciler.wakeCalmly());
  const during = passes.slice(1);
  // The first at once, as after any quiet time.
  expect(during[0]).toBeLessThan(3_050);
  expect(during.length).toBeGreaterThanOrEqual(5);
  expect(during.length).toBeLessThanOrEqual(7);
  await advance(1_200);
  expect(passes.length).toBe(during.length + 2);
  await stop();
});

test('what concerns a link waits for no calm', async () => {
  const { reconciler, passes, advance, stop } = start();
  await advance(3_000, () => reconciler.wakeCalmly());
  const before = passes.length;
  const lastAt = passes.at(-1) ?? 0;
  await advance(Math.max(0, lastAt + 150 - 3_000));
  reconciler.wakeCalmly();
  await advance(20);
  const waiting = passes.length;
  reconciler.wake();
  await advance(50);
  expect([waiting - before, passes.length - before]).toEqual([0, 1]);
  await stop();
});

test('pods that change nothing here cost no pass, one that does is programmed at once, and a minute later everything is looked at', async () => {
  let routes: KernelState['routes'] = [];
  const { reconciler, passes, advance, stop } = start(() => ({ ...nothing, routes }));
  await advance(1_000);
  await advance(5_000, () => reconciler.wakeCalmly());
  expect(passes).toHaveLength(1);
  routes = [{ table: 'main', destination: '10.9.9.9/32' }];
  reconciler.wakeCalmly();
  await advance(200);
  expect(passes).toHaveLength(2);
  reconciler.wake();
  await advance(200);
  expect(passes).toHaveLength(3);
  await advance(61_000, () => reconciler.wakeCalmly());
  expect(passes).toHaveLength(4);
  await stop();
});
