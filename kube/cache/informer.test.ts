/** A cache follows its server through failures and compactions, and tells its subscribers what changed. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ManualClock } from '#shared/ports/clock.ts';
import { History, open, settle } from './testing/history.ts';

const identity = (object: ConfigMap): string =>
  `${object.metadata.name} ${object.metadata.uid} ${object.metadata.resourceVersion} ${object.data?.color}`;
const identities = (objects: Iterable<ConfigMap>): string[] => [...objects].map(identity).sort();

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const color = fc.constantFrom('red', 'blue');
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), name, color }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), name }) },
  fc.record({ do: fc.constant('reincarnate' as const), name, color }),
  fc.record({ do: fc.constant('compact' as const) }),
  fc.record({ do: fc.constant('bookmark' as const) }),
  fc.record({ do: fc.constant('end' as const) }),
  fc.record({
    do: fc.constant('break' as const),
    code: fc.constantFrom('kube_unreachable', 'kube_failed', 'kube_gone'),
  }),
  fc.record({ do: fc.constant('fail' as const), times: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ do: fc.constant('settle' as const) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 3_000 }) }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

async function act(history: History, clock: ManualClock, next: Step): Promise<void> {
  switch (next.do) {
    case 'put':
      return history.put(next.name, next.color);
    case 'delete':
      return history.delete(next.name);
    case 'reincarnate':
      history.delete(next.name);
      return history.put(next.name, next.color);
    case 'compact':
      return history.compact();
    case 'bookmark':
      return history.bookmark();
    case 'end':
      return history.breakWatches();
    case 'break':
      return history.breakWatches(new AppError(next.code as 'kube_gone', 'broken'));
    case 'fail':
      history.failing = next.times;
      return;
    case 'settle':
      return void (await settle());
    case 'wait':
      clock.advance(next.ms);
      return void (await settle());
  }
}

test('any sequence of events, compactions and failures leaves the cache, its index and its subscribers equal to the server', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.array(step, { maxLength: 3 }), async (steps, between) => {
      const history = new History();
      const { cache, believed, clock, rest, close } = open(history);
      // Some things happen between two pages of a list.
      let hooks = between.filter((s) => s.do !== 'settle' && s.do !== 'wait');
      history.onPage = () => {
        const [hook, ...later] = hooks;
        hooks = later;
        if (hook !== undefined) void act(history, clock, hook);
      };
      for (const next of steps) await act(history, clock, next);
      await rest();
      const truth = identities(history.objects.values());
      expect(cache.isSynced()).toBe(true);
      expect(identities(cache.list())).toEqual(truth);
      expect(identities(believed.values())).toEqual(truth);
      for (const wanted of ['red', 'blue']) {
        const expected = [...history.objects.values()].filter((o) => o.data?.color === wanted);
        expect(identities(cache.byIndex('byColor', wanted))).toEqual(identities(expected));
      }
      expect(cache.list().every((o) => o.kind === 'ConfigMap' && !('managedFields' in o.metadata))).toBe(true);
      await close();
    }),
    { numRuns: 150 },
  );
});

describe('a cache', () => {
  test('goes on from the last bookmark instead of listing again, although the events before it are gone', async () => {
    const history = new History();
    history.put('a', 'red');
    const { cache, rest, close } = open(history);
    await rest();
    history.put('a', 'blue');
    history.bookmark();
    history.compact();
    history.breakWatches();
    await rest();
    history.put('b', 'red');
    await settle();
    expect(history.lists).toBe(1);
    expect(cache.list()).toHaveLength(2);
    await close();
  });

  test('waits longer and longer for a server that is away, and never longer than 15 s', async () => {
    const history = new History();
    history.failing = 1_000;
    const { clock, close, cache } = open(history);
    const tries: number[] = [];
    const startedAt = clock.now();
    let left = history.failing;
    while (clock.now() - startedAt < 120_000) {
      await settle();
      if (history.failing < left) tries.push(clock.now() - startedAt);
      left = history.failing;
      clock.advance(25);
    }
    const gaps = tries.slice(1).map((at, i) => at - (tries[i] ?? 0));
    expect(gaps[0]).toBeLessThanOrEqual(150);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(15_050);
    expect(Math.max(...gaps)).toBeGreaterThan(10_000);
    expect(cache.isSynced()).toBe(false);
    await close();
    await expect(cache.synced()).rejects.toBeDefined();
  });

  test('asks at once when another client finds the server back, and is quick again while that server is still starting', async () => {
    const history = new History();
    history.put('a', 'red');
    history.failing = 1_000;
    const { clock, close, cache } = open(history);
    const outageFrom = clock.now();
    history.outages.failed(outageFrom);
    while (clock.now() - outageFrom < 60_000) {
      await settle();
      clock.advance(25);
    }
    // The server that answers another client refuses this cache three times more.
    history.failing = 3;
    const backAt = clock.now();
    history.outages.answered(backAt);
    while (!cache.isSynced() && clock.now() - backAt < 15_000) {
      await settle();
      if (!cache.isSynced()) clock.advance(25);
    }
    expect(cache.list().map((object) => object.metadata.name)).toEqual(['a']);
    expect(clock.now() - backAt).toBeLessThan(1_000);
    await close();
  });

  test('goes without an object that its transform cannot take, and keeps all others', async () => {
    const history = new History();
    history.put('odd', 'none');
    history.put('a', 'red');
    const { cache, rest, close } = open(history, (object) => {
      if (object.metadata.name === 'odd') throw new TypeError('unexpected');
      return object;
    });
    await rest();
    history.put('odd', 'still');
    history.put('b', 'red');
    expect(cache.list().map((object) => object.metadata.name)).toEqual(['a', 'b']);
    expect(history.lists).toBe(1);
    await close();
  });

  test('follows what its transform keeps, even without versions, and says nothing of changes that it drops', async () => {
    const history = new History();
    history.put('a', 'red');
    const nameAndColor = ({ apiVersion, kind, metadata, data }: ConfigMap): ConfigMap => ({
      apiVersion,
      kind,
      metadata: { namespace: metadata.namespace ?? '', name: metadata.name },
      ...(data && { data }),
    });
    const { cache, rest, close } = open(history, nameAndColor);
    await rest();
    const changes: string[] = [];
    cache.subscribe(({ before, after }) => changes.push(`${before?.data?.color}>${after?.data?.color}`));
    history.put('a', 'red');
    history.put('a', 'blue');
    history.delete('a');
    expect(changes).toEqual(['undefined>red', 'red>blue', 'blue>undefined']);
    await close();
  });

  test('keeps telling the others when one subscriber throws', async () => {
    const history = new History();
    const { cache, rest, close } = open(history);
    await rest();
    const changes: string[] = [];
    cache.subscribe(() => {
      throw new Error('defect');
    });
    cache.subscribe(({ after }) => changes.push(after?.metadata.name ?? ''));
    history.put('a', 'red');
    expect(changes).toEqual(['a']);
    await close();
  });
});
