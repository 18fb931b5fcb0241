import { expect, test } from 'vitest';
import type { Cache } from '#kube/model/types.ts';
import { KeyedMutex } from '#shared/async/keyed-mutex.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { type ReflectionOptions, reflectorNames } from './engine/options.ts';
import { NodeReflection, type NodeReflectionDeps } from './node-reflection.ts';

test('a cluster whose caches end before they ever knew anything is not asked again and again', async () => {
  const stop = new AbortController();
  let asked = 0;
  const ended = {
    list: () => [],
    subscribe: () => () => undefined,
    async synced() {
      if (++asked > 1_000) stop.abort();
      throw new Error('the caches have ended');
    },
  } as unknown as Cache<never>;
  const caches = { cache: () => ended, scoped: () => ended };
  const kinds = Object.fromEntries(reflectorNames.map((name) => [name, { workers: 0, type: 'DenyList' }]));
  const options = { kinds, labelsNotReflected: [], annotationsNotReflected: [], apiSupport: false };
  const deps = {
    consumer: 'rome',
    provider: 'milan',
    nodeName: 'milan',
    local: { caches },
    peer: { caches },
    localPods: ended,
    shared: {
      providerMutex: new KeyedMutex(),
      deps: { nodes: ended, pod: () => undefined },
      home: () => undefined,
      followTokens: () => () => undefined,
    },
    options: () => options as unknown as ReflectionOptions,
    clock: new ManualClock(),
    log: silentLog,
  } as unknown as NodeReflectionDeps;
  const running = new NodeReflection(deps, stop.signal).run();
  await new Promise(setImmediate);
  expect(asked).toBeLessThan(10);
  stop.abort();
  await running;
});
