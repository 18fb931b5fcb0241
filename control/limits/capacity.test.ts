import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codeOf } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { createMemoryStore } from '../adapters/memory/memory-store.ts';
import { createControl } from '../control.ts';
import type { Store } from '../ports/store.ts';
import { adminOf, brokerUrl, createBrokerClusters } from '../testing/broker-clusters.ts';
import { countingIds } from '../testing/counting-ids.ts';
import { countedItems, countersOf } from '../testing/exact-counts.ts';
import { Crash } from '../testing/faulty-store.ts';
import { hostedLimits } from './limits.ts';

const admin = adminOf('default');
const names = ['rome', 'milan', 'turin', 'siena', 'lecce'] as const;
const limits = { ...hostedLimits, clusters: 4, peerings: 2 };

/** Refusals that a caller meets beside others; anything else is a failure. */
const mayHappen = new Set([
  'limit_reached',
  'version_conflict',
  'in_use',
  'cluster_unknown',
  'not_found',
  'already_exists',
]);

async function survive(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Crash) && !mayHappen.has(codeOf(error) ?? '')) throw error;
  }
}

const doing = fc.record({
  what: fc.constantFrom('join', 'leave', 'force', 'unpeer', ...Array<'peer'>(7).fill('peer')),
  one: fc.nat({ max: names.length - 1 }),
  other: fc.nat({ max: names.length - 1 }),
  dies: fc.constantFrom(undefined, undefined, 'before', 'after'),
});

test('counters are what there is after every single write, in any race and with any death, and nothing is made beyond a limit', async () => {
  const met = { most: { clusters: 0, peerings: 0 }, refused: 0, died: 0 };
  const runs = fc.asyncProperty(fc.scheduler(), fc.array(doing, { minLength: 10, maxLength: 24 }), async (s, all) => {
    const clock = new ManualClock();
    const memory = createMemoryStore({ clock });
    const checked: Store = {
      ...memory,
      async transact(...args) {
        await memory.transact(...args);
        const there = await countedItems(memory, 'default');
        expect(await countersOf(memory, 'default')).toEqual(there);
        expect(there.clusters).toBeLessThanOrEqual(limits.clusters);
        expect(there.peerings).toBeLessThanOrEqual(limits.peerings);
        met.most.clusters = Math.max(met.most.clusters, there.clusters);
        met.most.peerings = Math.max(met.most.peerings, there.peerings);
      },
    };
    const setting = createBrokerClusters({ clock, deps: { store: checked, limits } });
    for (const name of names.slice(0, 3)) await setting.join(name);
    const ids = countingIds();
    /** A process that takes its turns with the others at every read and write, and may die at its last write. */
    const process = (dies: 'before' | 'after' | undefined) => {
      const turn = () => s.schedule(Promise.resolve());
      let writes = 0;
      const store: Store = {
        ...checked,
        get: (...args) => turn().then(() => checked.get(...args)) as never,
        query: (...args) => turn().then(() => checked.query(...args)) as never,
        async transact(...args) {
          await turn();
          writes += 1;
          const last = dies !== undefined && writes === 1;
          if (last) met.died += 1;
          if (last && dies === 'before') throw new Crash('died before the commit');
          await checked.transact(...args);
          if (last) throw new Crash('died after the commit');
        },
      };
      const channel = { ring: () => undefined };
      return createControl({
        store,
        clock,
        ids,
        log: silentLog,
        limits,
        channel,
        broker: () => ({ url: brokerUrl }),
      });
    };
    const perform = async ({ what, one, other, dies }: (typeof all)[number]): Promise<void> => {
      const [consumer, provider] = [names[one] ?? 'rome', names[other] ?? 'rome'];
      if (what === 'join') return void (await setting.join(consumer));
      const { clusters, peerings } = process(dies);
      if (what === 'leave' || what === 'force')
        return void (await clusters.remove(admin, consumer, { force: what === 'force' }));
      if (consumer === provider) return;
      if (what === 'peer') return void (await peerings.request(admin, { consumer, provider, resources: {} }));
      const { id } = await peerings.find(admin, consumer, provider);
      await peerings.unpeer(admin, id);
    };
    await s.waitFor(
      Promise.all(
        all.map((one) =>
          survive(async () => {
            try {
              await perform(one);
            } catch (error) {
              if (codeOf(error) === 'limit_reached') met.refused += 1;
              throw error;
            }
          }),
        ),
      ),
    );
    for (let i = 0; i < 6; i += 1) {
      await setting.step();
      clock.advance(60_000);
      await setting.control.peerings.sweep();
    }
  });
  // Runs that never came near a limit, and in which nothing died, prove nothing: some sixty more then.
  const proves = (): boolean =>
    met.most.clusters === limits.clusters &&
    met.most.peerings === limits.peerings &&
    Math.min(met.refused, met.died) > 3;
  for (let round = 0; round < 10 && !proves(); round += 1) await fc.assert(runs, { numRuns: 60, endOnFailure: true });
  expect(met.most).toEqual({ clusters: limits.clusters, peerings: limits.peerings });
  expect(met.refused).toBeGreaterThan(3);
  expect(met.died).toBeGreaterThan(3);
}, 120_000);

test('a tenant near its limit of thousands is answered by as many reads as one that has nothing', async () => {
  const clock = new ManualClock();
  const memory = createMemoryStore({ clock });
  let items = 0;
  const store: Store = {
    ...memory,
    async get(...args) {
      items += 1;
      return memory.get(...args);
    },
    async query(...args) {
      const page = await memory.query(...args);
      items += page.items.length;
      return page as never;
    },
  };
  const many = 600;
  const setting = createBrokerClusters({ clock, deps: { store, limits: { ...limits, clusters: 10, peerings: many } } });
  for (const name of names) await setting.join(name);
  const ask = async (consumer: string, provider: string): Promise<number> => {
    const before = items;
    await setting.control.peerings.request(admin, { consumer, provider, resources: {} });
    return items - before;
  };
  const first = await ask('rome', 'milan');
  const [template] = (await memory.query({ partition: 't/default/peerings', limit: 1 })).items;
  for (let i = 0; i < many - 2; i += 1) {
    await memory.transact([
      { op: 'put', pk: 't/default/peerings', sk: `pe_old-${i}`, value: template?.value },
      { op: 'add', pk: 't/default/counts', sk: 'peerings', by: 1 },
    ]);
  }
  expect(await ask('turin', 'siena')).toBe(first);
  await expect(ask('siena', 'turin')).rejects.toMatchObject({ code: 'limit_reached', detail: { used: many } });
});
