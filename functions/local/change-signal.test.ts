import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import { awaited } from '#control/events/changes.ts';
import type { Op } from '#control/ports/store.ts';
import { key } from '#control/store/keys.ts';
import { waitUntil } from '#functions/runtime/wait.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { type ListenOptions, listenIn } from './change-signal.ts';
import { createStartTurns, type StartTurns, turnOf } from './start-turns.ts';

const never = new AbortController().signal;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function setUp(options: Partial<ListenOptions> = {}) {
  const clock = new ManualClock();
  const stop = new AbortController();
  const signal = listenIn(createMemoryStore({ clock }), {
    clock,
    turns: createStartTurns(),
    stopping: stop.signal,
    ...options,
  });
  const { store } = signal;
  const heard: string[] = [];
  return {
    ...signal,
    clock,
    stop,
    heard,
    /** One wait that ends by what it hears first, and its name is noted. */
    async wait(name: string, tenant: string, names: readonly string[]) {
      const listening = signal.listen(tenant, names);
      await listening.changed(25_000, never).then(
        () => heard.push(name),
        (error: Error) => heard.push(error.message),
      );
      listening.end();
    },
    /** Of the items at these keys: made where there is none yet. */
    async change(...places: readonly { readonly pk: string; readonly sk: string }[]) {
      const ops = places.map(async (at): Promise<Op> => {
        const before = await store.get<number>(at.pk, at.sk);
        return before
          ? { op: 'update', ...at, value: before.value + 1, ifVersion: before.version }
          : { op: 'put', ...at, value: 1 };
      });
      await store.transact(await Promise.all(ops));
    },
    happen: (type: string, subject: string, stream = 'acme') =>
      store.transact([], [{ id: `${type} ${subject}`, stream, type, subject, at: clock.now(), data: {} }]),
  };
}

test('a commit wakes the waits for what it changes, and no others', async () => {
  const s = setUp();
  const waits = [
    s.wait('pe_1', 'acme', awaited.peering('acme', 'pe_1')),
    s.wait('pe_1 again', 'acme', awaited.peering('acme', 'pe_1')),
    s.wait('pe_2', 'acme', awaited.peering('acme', 'pe_2')),
    s.wait('pe_1 of bolt', 'bolt', awaited.peering('bolt', 'pe_1')),
    s.wait('delivery', 'acme', awaited.delivery('acme', 'wh_1', 'ev_1')),
    s.wait('delivery of a webhook that goes', 'acme', awaited.delivery('acme', 'wh_2', 'ev_1')),
    s.wait('feed', 'acme', awaited.events('acme', undefined)),
    s.wait('feed of pe_1', 'acme', awaited.events('acme', 'peering/pe_1')),
    s.wait('feed of pe_2', 'acme', awaited.events('acme', 'peering/pe_2')),
  ];
  const after = async (work: Promise<void>): Promise<string[]> => {
    await work;
    for (let i = 0; i < 5; i += 1) await turn();
    return s.heard.splice(0).sort();
  };
  expect(await after(s.change(key.cluster('acme', 'rome')))).toEqual([]);
  expect(await after(s.change(key.peering('acme', 'pe_3')))).toEqual([]);
  expect(await after(s.change(key.peering('acme', 'pe_1'), key.look('acme', 'pe_2')))).toEqual(['pe_1', 'pe_1 again']);
  expect(await after(s.store.transact([{ op: 'check', ...key.peering('acme', 'pe_2'), ifVersion: 0 }]))).toEqual([]);
  expect(await after(s.change(key.peering('bolt', 'pe_1'), key.peering('acme', 'pe_2')))).toEqual([
    'pe_1 of bolt',
    'pe_2',
  ]);
  expect(await after(s.change(key.delivery('acme', 'wh_1', 'ev_1')))).toEqual(['delivery']);
  expect(await after(s.change(key.webhook('acme', 'wh_2')))).toEqual(['delivery of a webhook that goes']);
  expect(await after(s.happen('cluster.observed', 'peering/pe_1'))).toEqual([]);
  expect(await after(s.happen('peering.changed', 'peering/pe_1', 'bolt'))).toEqual([]);
  expect(await after(s.happen('peering.changed', 'peering/pe_1'))).toEqual(['feed', 'feed of pe_1']);
  expect(s.waiting()).toBe(1);
  s.stop.abort(new Error('over'));
  await Promise.all(waits);
  expect([s.heard, s.waiting()]).toEqual([['over'], 0]);
});

test('a commit that fails wakes no wait', async () => {
  const s = setUp();
  const waits = s.wait('pe_1', 'acme', awaited.peering('acme', 'pe_1'));
  const stale = s.store.transact([{ op: 'delete', ...key.peering('acme', 'pe_1'), ifVersion: 7 }]);
  await expect(stale).rejects.toMatchObject({ code: 'version_conflict' });
  for (let i = 0; i < 5; i += 1) await turn();
  expect(s.heard).toEqual([]);
  s.stop.abort(new Error('over'));
  await waits;
});

test('a tenant waits so many times at most, and another tenant is not concerned', async () => {
  const s = setUp({ maxOfTenant: 2 });
  const held = [s.listen('acme', ['a']), s.listen('acme', ['b'])];
  expect(() => s.listen('acme', ['c'])).toThrow('2 times already');
  held.push(s.listen('bolt', ['a']));
  expect(s.waiting()).toBe(3);
  held.shift()?.end();
  held.push(s.listen('acme', ['c']));
  for (const one of held) one.end();
  expect(s.waiting()).toBe(0);
});

test('a broker that stops lets no wait begin, and ends those that wait', async () => {
  const s = setUp();
  const listening = s.listen('acme', ['a']);
  s.stop.abort(new Error('over'));
  await expect(listening.changed(25_000, never)).rejects.toThrow('over');
  expect(() => s.listen('acme', ['a'])).toThrow('over');
});

test('what a commit wakes goes on when it is the turn of its tenant, for each wait once', async () => {
  const asked: { readonly owner: string; readonly go: () => void }[] = [];
  const turns: StartTurns = { take: (owner) => new Promise<void>((go) => asked.push({ owner, go })) };
  const s = setUp({ turns });
  const waits = ['acme', 'acme', 'bolt'].map((tenant) => s.wait(tenant, tenant, awaited.peering(tenant, 'pe_1')));
  await s.change(key.peering('acme', 'pe_1'), key.peering('bolt', 'pe_1'));
  await s.change(key.peering('acme', 'pe_1'));
  await expect.poll(() => asked.map(({ owner }) => owner)).toEqual([turnOf('acme'), turnOf('acme'), turnOf('bolt')]);
  expect(s.heard).toEqual([]);
  for (const { go } of asked) go();
  await Promise.all(waits);
  expect(s.heard).toEqual(['acme', 'acme', 'bolt']);
});

/** Less than what it takes until a wait looks again without having heard. */
const seconds = 4;

test('no wait misses its change, and none reads for the change of another, in whichever order reads, commits, turns and seconds come', async () => {
  const ids = ['pe_1', 'pe_2', 'pe_3'];
  const commits = fc.array(fc.constantFrom(...ids), { minLength: 3, maxLength: 9 });
  const waits = fc.array(fc.record({ id: fc.constantFrom(...ids), part: fc.double({ min: 0, max: 1, noNaN: true }) }), {
    minLength: 1,
    maxLength: 5,
  });
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), commits, waits, async (order, changes, asked) => {
      const comes = (what: string): Promise<void> => order.schedule(Promise.resolve(), what);
      const s = setUp({ turns: { take: (owner) => comes(`turn of ${owner}`) } });
      const times = (id: string): number => changes.filter((one) => one === id).length;
      for (const id of ids)
        void changes
          .filter((one) => one === id)
          .reduce(async (before) => {
            await before;
            await comes(`commit of ${id}`);
            await s.change(key.peering('acme', id));
          }, Promise.resolve());
      for (let second = 1; second <= seconds; second += 1) void comes('a second').then(() => s.clock.advance(1_000));
      const outcome = asked.map(() => ({ looks: 0, value: -1 }));
      const polls = asked.map(async ({ id, part }, i) => {
        const mine = outcome[i] as { looks: number; value: number };
        const { pk, sk } = key.peering('acme', id);
        await comes('a request');
        mine.value = await waitUntil({
          async look() {
            mine.looks += 1;
            await comes(`read of ${id}`);
            const found = await s.store.get<number>(pk, sk);
            await comes(`answer of ${id}`);
            return found?.value ?? 0;
          },
          done: (value) => value >= Math.ceil(part * times(id)),
          seconds: 25,
          tenant: 'acme',
          names: awaited.peering('acme', id),
          clock: s.clock,
          listen: s.listen,
          signal: never,
        });
      });
      while (order.count() > 0) {
        await order.waitOne();
        await turn();
      }
      for (const [i, { id, part }] of asked.entries()) {
        expect(outcome[i]?.value, id).toBeGreaterThanOrEqual(Math.ceil(part * times(id)));
        expect(outcome[i]?.looks, id).toBeLessThanOrEqual(1 + times(id));
      }
      await Promise.all(polls);
      expect(s.waiting()).toBe(0);
    }),
    { numRuns: 150 },
  );
});
