import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CacheOptions } from '#kube/model/types.ts';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { LaggingCache, Side } from '../testing/config-map-sides.ts';
import { Reflector } from './engine/reflector.ts';
import { SharedScopes } from './engine/shared-watches.ts';
import { configMap } from './kinds/config-map.ts';
import { outgoing } from './kinds/kind.ts';
import { isReflected } from './model/policy.ts';

const pair = { consumer: 'cons', provider: 'prov' };
const labels = { 'offloading.liqo.io/origin': 'cons', 'offloading.liqo.io/destination': 'prov' };
const skip = 'liqo.io/skip-reflection';

const step = fc.oneof(
  fc.record({
    do: fc.constant('write' as const),
    name: fc.constantFrom('a', 'b'),
    data: fc.dictionary(fc.constantFrom('x', 'y'), fc.constantFrom('1', '2')),
    immutable: fc.boolean(),
    skipped: fc.boolean(),
    tier: fc.option(fc.constantFrom('front', 'back'), { nil: undefined }),
  }),
  fc.record({ do: fc.constant('remove' as const), name: fc.constantFrom('a', 'b') }),
  /** At the provider an object of that name is edited, deleted or created by another client; `ours` is then never touched by us. */
  fc.record({
    do: fc.constant('meddle' as const),
    name: fc.constantFrom('a', 'b'),
    how: fc.constantFrom('edit', 'delete', 'make'),
  }),
  fc.record({ do: fc.constant('hear' as const), side: fc.constantFrom('here', 'there'), heard: fc.boolean() }),
  fc.record({ do: fc.constant('work' as const) }),
  fc.record({ do: fc.constant('restart' as const) }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class World {
  readonly here = new Side();
  readonly there = new Side();
  readonly clock = new ManualClock();
  readonly strangers = new Map<string, ConfigMap>();
  readonly said: string[] = [];
  #caches: { here: LaggingCache; there: LaggingCache } | undefined;
  #stop = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #reflector: Reflector | undefined;

  start(): void {
    const opened: Partial<Record<'here' | 'there', LaggingCache>> = {};
    const scoped = (which: 'here' | 'there') => (_: unknown, options: CacheOptions<ConfigMap>) => {
      opened[which] = new LaggingCache(this[which], options);
      return opened[which].cache;
    };
    this.#stop = new AbortController();
    const events = { emit: (_: unknown, type: string, reason: string) => void this.said.push(`${type} ${reason}`) };
    this.#reflector = new Reflector(
      outgoing(configMap),
      { workers: 2, type: 'DenyList', allows: (object) => isReflected(object, 'DenyList') },
      {
        ...pair,
        local: { api: this.here.api, events } as never,
        scopes: new SharedScopes({ scoped: scoped('here') } as never),
        peer: { api: this.there.api, caches: { scoped: scoped('there') } } as never,
        shape: { labelsNotReflected: [], annotationsNotReflected: [] },
        around: {} as never,
        clock: this.clock,
        log: silentLog,
      },
      this.#stop.signal,
    );
    this.#reflector.follow(new Map([['demo', 'demo-cons']]));
    this.#caches = opened as { here: LaggingCache; there: LaggingCache };
    this.#ended = this.#reflector.run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  /** Everything that is queued, and everything that waits for at most a minute. */
  async work(): Promise<void> {
    for (let round = 0; round < 6; round++) {
      for (let i = 0; i < 4; i++) await new Promise((resolve) => setImmediate(resolve));
      this.clock.advance(15_000);
    }
  }

  /** Nothing is heard, but after a while everything is looked at again. */
  async settle(): Promise<void> {
    for (let round = 0; round < 4; round++) {
      this.hear('here', false);
      this.hear('there', false);
      this.resync();
      await this.work();
    }
  }

  resync(): void {
    this.#reflector?.lookAtAll();
  }

  hear(side: 'here' | 'there', heard: boolean): void {
    this.#caches?.[side].catchUp(heard);
  }

  async take(one: Step): Promise<void> {
    switch (one.do) {
      case 'write':
        return this.#write(one);
      case 'remove':
        return this.here.remove(one.name);
      case 'meddle':
        return this.#meddle(one.name, one.how);
      case 'hear':
        return this.hear(one.side as 'here' | 'there', one.heard);
      case 'work':
        return this.work();
      case 'restart':
        await this.stop();
        return this.start();
    }
  }

  #write({ name, data, immutable, skipped, tier }: Extract<Step, { do: 'write' }>): void {
    if (this.here.get(name)?.immutable) this.here.remove(name);
    const metadata = { annotations: skipped ? { [skip]: 'true' } : {}, labels: tier === undefined ? {} : { tier } };
    this.here.put(name, 'demo', { data, metadata, ...(immutable ? { immutable } : {}) });
  }

  #meddle(name: string, how: string): void {
    const found = this.there.get(name);
    if (how === 'delete') {
      this.there.remove(name);
      this.strangers.delete(name);
    } else if (how === 'make' && !found) {
      this.there.put(name, 'demo-cons', { data: { x: 'theirs' } });
      this.strangers.set(name, this.there.get(name) as ConfigMap);
    } else if (how === 'edit' && found && !found.immutable && !this.strangers.has(name)) {
      this.there.put(name, 'demo-cons', { data: { ...found.data, x: 'drift' } });
    }
  }
}

/** Of what others added, only keys that we do not write may stay. */
function expectEqual(world: World): void {
  for (const name of ['a', 'b']) {
    const [local, remote, stranger] = [world.here.get(name), world.there.get(name), world.strangers.get(name)];
    if (stranger) {
      expect(remote).toEqual(stranger);
      continue;
    }
    if (!local || !isReflected(local, 'DenyList')) {
      expect(remote).toBeUndefined();
      continue;
    }
    expect(remote?.data).toMatchObject(local.data ?? {});
    expect(remote?.immutable ?? false).toBe(local.immutable ?? false);
    expect(remote?.metadata.labels).toEqual({ ...local.metadata.labels, ...labels });
    const extra = Object.entries(remote?.data ?? {}).filter(([key]) => !(key in (local.data ?? {})));
    expect(extra.every(([, value]) => value === 'drift')).toBe(true);
  }
}

test('B112, B040, B101: after any changes on both sides, however few of them are observed, both agree in the end, foreign owners keep theirs, and then nothing is written or reported', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const world = new World();
      world.start();
      try {
        for (const one of steps) await world.take(one);
        await world.settle();
        expectEqual(world);
        for (const name of ['a', 'b'] as const) await world.take({ do: 'meddle', name, how: 'edit' });
        await world.settle();
        expectEqual(world);
        const before = [world.here.writes, world.there.writes, world.said.length];
        for (let round = 0; round < 10; round++) {
          world.resync();
          await world.work();
        }
        expect([world.here.writes, world.there.writes, world.said.length]).toEqual(before);
      } finally {
        await world.stop();
      }
    }),
    {
      numRuns: 300,
      examples: [
        // A stranger's object that shares no field with ours, made after we had looked.
        [
          [
            { do: 'write', name: 'a', data: {}, immutable: false, skipped: false, tier: undefined },
            { do: 'hear', side: 'here', heard: false },
            { do: 'remove', name: 'b' },
            { do: 'meddle', name: 'a', how: 'make' },
          ],
        ],
      ],
    },
  );
}, 120_000);
