import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { createMemoryStore } from '../adapters/memory/memory-store.ts';
import type { Store } from '../ports/store.ts';
import { dueItems } from '../testing/due-items.ts';
import { type DueItem, sweepDue } from './due.ts';
import { dueShards, key } from './keys.ts';

const start = 1_000_000;

function stage() {
  const clock = new ManualClock(start);
  const memory = createMemoryStore({ clock });
  let queries = 0;
  const store: Store = {
    ...memory,
    query(query, signal) {
      queries += 1;
      return memory.query(query, signal);
    },
  };
  const deps = { store, clock, log: silentLog };
  const seen: string[] = [];
  /** As a look does: what was looked at is due no more. */
  const done = async ({ tenant, item }: DueItem<unknown>): Promise<void> => {
    seen.push(`${tenant} ${item.sk.split('/').slice(2).join('/')}`);
    await store.transact([{ op: 'delete', pk: item.pk, sk: item.sk, ifVersion: 1 }]);
  };
  return {
    clock,
    store,
    seen,
    done,
    plan: (tenant: string, id: string, at: number) =>
      store.transact([{ op: 'put', ...key.due(tenant, at, id), value: { peering: id } }]),
    sweep: (handle = done, signal?: AbortSignal) => sweepDue(deps, { index: 'looks', handle }, signal),
    async queriesOf(work: () => Promise<unknown>): Promise<number> {
      const before = queries;
      await work();
      return queries - before;
    },
  };
}

/** Where sweeps stopped. */
async function positions(store: Store) {
  const keys = Array.from({ length: dueShards }, (_, shard) => key.stopped('looks', shard));
  return (await Promise.all(keys.map(({ pk, sk }) => store.get(pk, sk)))).filter((item) => item !== undefined);
}

test('a sweep asks as often with two thousand tenants for which nothing is due as with none', async () => {
  const s = stage();
  const idle = await s.queriesOf(() => s.sweep());
  for (let i = 0; i < 2_000; i += 1) {
    await s.store.transact([{ op: 'put', ...key.tenantName(`t-${i}`), value: {} }]);
    await s.plan(`t-${i}`, 'pe', start + 60_000 + i);
  }
  expect(await s.queriesOf(() => s.sweep())).toBe(idle);
  expect(s.seen).toEqual([]);
  expect(await s.sweep()).toEqual({ nextDueAt: start + 60_000 });
});

test('everything due is looked at once, what is not due is left, and the next time is said', async () => {
  const s = stage();
  for (let i = 0; i < 500; i += 1) await s.plan(`t-${i % 50}`, `pe-${i}`, start - i);
  await s.plan('t-1', 'later', start + 1);
  expect(await s.sweep()).toEqual({ nextDueAt: start + 1 });
  expect(new Set(s.seen).size).toBe(500);
  expect(s.seen).toHaveLength(500);
  expect((await dueItems(s.store)).map(({ sk }) => sk)).toEqual([key.due('t-1', start + 1, 'later').sk]);
});

test('what fails stays for the next sweep and holds nothing else up', async () => {
  const s = stage();
  for (let i = 0; i < 300; i += 1) await s.plan('bad', `pe-${i}`, start - 1_000);
  for (let i = 0; i < 20; i += 1) await s.plan('good', `pe-${i}`, start);
  let tried = 0;
  await s.sweep(async (due) => {
    if (due.tenant === 'good') return s.done(due);
    tried += 1;
    throw new Error('bad');
  });
  expect([tried, s.seen.length]).toEqual([300, 20]);
  expect(await dueItems(s.store)).toHaveLength(300);
});

test('a tenant with very much to do has its turns and does not hold up the others', async () => {
  const s = stage();
  for (let i = 0; i < 4_000; i += 1) await s.plan('busy', `pe-${i}`, start - 1_000_000 + i);
  for (let i = 0; i < 40; i += 1) await s.plan(`t-${i}`, 'pe', start);
  await s.sweep();
  expect(s.seen).toHaveLength(4_040);
  const last = s.seen.findLastIndex((one) => !one.startsWith('busy '));
  // A hundred of each shard come first, of one that is faster two hundred.
  expect(last).toBeLessThan(dueShards * 200);
});

test('what is due of one tenant is not read again for each of its turns', async () => {
  const s = stage();
  const count = 8_000;
  for (let i = 0; i < count; i += 1) await s.plan('busy', `pe-${i}`, start - count + i);
  // As a look at a queue of deliveries does: the first one stands for all, and none is removed here.
  const asked = await s.queriesOf(() => s.sweep(async () => undefined));
  const pages = count / 100;
  expect(asked).toBeLessThan(pages * 8);
});

test('what is due of two tenants, one after the other, is not read again for each of their turns', async () => {
  const s = stage();
  const each = 8_000;
  for (let i = 0; i < each; i += 1) await s.plan('first', `pe-${i}`, start - 2 * each + i);
  for (let i = 0; i < each; i += 1) await s.plan('second', `pe-${i}`, start - each + i);
  const looked: string[] = [];
  const asked = await s.queriesOf(() => s.sweep(async ({ tenant, item }) => void looked.push(`${tenant} ${item.sk}`)));
  expect(new Set(looked).size).toBe(2 * each);
  expect(looked).toHaveLength(2 * each);
  const pages = (2 * each) / 100;
  expect(asked).toBeLessThan(pages * 8);
});

test('everything due is looked at once, in any order of the items of several tenants, removed or not', async () => {
  const runs = fc.array(fc.record({ tenant: fc.nat(3), count: fc.integer({ min: 1, max: 1_500 }) }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(runs, fc.boolean(), async (all, removes) => {
      const s = stage();
      let at = 0;
      const planned: string[] = [];
      for (const { tenant, count } of all) {
        for (let i = 0; i < count; i += 1, at += 1) {
          await s.plan(`t-${tenant}`, `pe-${at}`, at);
          planned.push(`t-${tenant} pe-${at}`);
        }
      }
      await s.sweep(
        removes ? s.done : async ({ tenant, item }) => void s.seen.push(`${tenant} ${item.sk.split('/').at(-1)}`),
      );
      expect([...s.seen].sort()).toEqual(planned.sort());
    }),
    { numRuns: 20 },
  );
});

test('a sweep whose time is over says so, and the next one begins where it stopped', async () => {
  const s = stage();
  for (let i = 0; i < 4_000; i += 1) await s.plan(`t-${i}`, 'pe', start - 4_000 + i);
  const stuck = async (due: DueItem<unknown>): Promise<void> => {
    if (Number(due.tenant.slice(2)) < 1_000) throw new Error('it fails each time');
    await s.done(due);
  };
  const over = new AbortController();
  let handled = 0;
  const first = await s.sweep(async (due) => {
    handled += 1;
    if (handled === 2_000) over.abort(new Error('time is over'));
    await stuck(due);
  }, over.signal);
  expect(first).toEqual({ unfinished: true });
  expect((await positions(s.store)).length).toBeGreaterThan(0);

  const again = new AbortController();
  const order: number[] = [];
  await s.sweep(async (due) => {
    order.push(Number(due.tenant.slice(2)));
    await stuck(due);
  }, again.signal);
  expect(order.slice(0, 500).filter((n) => n < 1_000)).toEqual([]);
  expect(await dueItems(s.store)).toHaveLength(1_000);
  expect(await positions(s.store)).toEqual([]);
});
