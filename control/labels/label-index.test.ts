/** Lists by label read what has the label, and a list of clusters reads when all of them were seen in one query. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseSelector, selects } from '#shared/domain/label-selector.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { createMemoryStore } from '../adapters/memory/memory-store.ts';
import type { Labels } from '../model/labels.ts';
import { key } from '../store/keys.ts';
import { adminOf, createBrokerClusters } from '../testing/broker-clusters.ts';
import { countingReads } from '../testing/counting-store.ts';
import { placesOf, wantedPlaces } from '../testing/exact-counts.ts';
import { labelOps } from './label-index.ts';

const admin = adminOf('default');

function started() {
  const clock = new ManualClock();
  const counted = countingReads(createMemoryStore({ clock }));
  return { ...createBrokerClusters({ clock, deps: { store: counted.store } }), of: counted.of };
}

/** Copies of what a broker wrote for one cluster, under other names. */
async function manyClusters(count: number, labelsOf: (i: number) => Labels) {
  const setting = started();
  await setting.join('rome');
  const { store } = setting;
  const at = key.cluster('default', 'rome');
  const seenAt = key.seen('default', 'rome');
  const [cluster, seen] = await store.getMany<object>({ keys: [at, seenAt] });
  for (let i = 0; i < count; i += 1) {
    const id = `c-${String(i).padStart(4, '0')}`;
    const labels = labelsOf(i);
    await store.transact([
      { op: 'put', ...key.cluster('default', id), value: { ...cluster?.value, id, labels } },
      { op: 'put', ...key.seen('default', id), value: seen?.value },
      { op: 'put', ...key.revision('default', id), value: { revision: i } },
      ...labelOps({ tenant: 'default', kind: 'cluster', id }, {}, labels),
    ]);
  }
  return setting;
}

test('a page of 200 clusters is two queries of the table, whose second one has the revisions, too', async () => {
  const { control, of, store } = await manyClusters(300, () => ({}));
  store.getMany = () => Promise.reject(new Error('many keys are asked for by a hundred'));
  const reads = await of(async () => {
    const { items } = await control.clusters.list(admin, { limit: 200 });
    expect(items.filter(({ online }) => online)).toHaveLength(200);
  });
  expect(reads).toEqual({ items: 600, requests: 2 });
});

test('a list of clusters, page by page, says of each when it was seen, for ids that begin with each other and beside clusters that left', async () => {
  const id = fc.stringMatching(/^[ab0](-{0,2}[ab0]){0,3}$/);
  const clusters = fc.uniqueArray(fc.record({ id, gone: fc.boolean() }), { selector: (one) => one.id, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(clusters, fc.integer({ min: 1, max: 4 }), fc.boolean(), async (made, limit, includeLeft) => {
      const { control, clock, store, join } = started();
      await join('rome');
      const rome = await store.get<object>('t/default/clusters', 'rome');
      for (const [i, one] of made.entries()) {
        const value = { ...rome?.value, id: one.id, state: one.gone ? 'left' : 'joined' };
        await store.transact([
          { op: 'put', ...key.cluster('default', one.id), value },
          { op: 'put', ...key.seen('default', one.id), value: { at: clock.now() - i, every: 30 } },
          ...(i % 2 ? [{ op: 'put' as const, ...key.revision('default', one.id), value: { revision: i } }] : []),
        ]);
      }
      const found: [string, number][] = [];
      let cursor: string | undefined;
      do {
        const page = await control.clusters.list(admin, { limit, includeLeft, ...(cursor && { cursor }) });
        found.push(...page.items.map(({ id: name, lastSeenAt }): [string, number] => [name, lastSeenAt]));
        cursor = page.cursor;
      } while (cursor !== undefined);
      const wanted = made.flatMap((one, i) => (one.gone && !includeLeft ? [] : [[one.id, clock.now() - i] as const]));
      expect(Object.fromEntries(found)).toEqual({ ...Object.fromEntries(wanted), rome: clock.now() });
      expect(found).toHaveLength(wanted.length + 1);
    }),
    { numRuns: 60 },
  );
});

test('of thousands of clusters those with a label are found by reading them alone', async () => {
  const { control, of } = await manyClusters(2_000, (i) => ({
    tier: i % 500 === 0 ? 'gold' : 'silver',
    zone: `z${i % 3}`,
  }));
  const reads = await of(async () => {
    const { items, cursor } = await control.clusters.list(admin, { labels: parseSelector('zone,tier=gold') });
    expect([items.map(({ id }) => id), cursor]).toEqual([['c-0000', 'c-0500', 'c-1000', 'c-1500'], undefined]);
  });
  // For each its index, its record and when it was seen.
  expect(reads).toEqual({ items: 12, requests: 3 });
});

test('of hundreds of peerings those with a label are found by reading them alone', async () => {
  const { control, of, store, join } = started();
  for (const name of ['rome', 'milan']) await join(name);
  const { peering } = await control.peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: {} });
  const item = await store.get<{ spec: object }>('t/default/peerings', peering.id);
  for (let i = 0; i < 500; i += 1) {
    const spec = { ...item?.value.spec, id: `pe_x${i}`, labels: { team: i === 250 ? 'shop' : 'other' } };
    await store.transact([
      { op: 'put', ...key.peering('default', spec.id), value: { ...item?.value, spec } },
      ...labelOps({ tenant: 'default', kind: 'peering', id: spec.id }, {}, spec.labels),
    ]);
  }
  const reads = await of(async () => {
    const { items } = await control.peerings.list(admin, { labels: parseSelector('team=shop') });
    expect(items.map(({ id }) => id)).toEqual(['pe_x250']);
  });
  expect(reads).toEqual({ items: 2, requests: 2 });
  const together = { labels: parseSelector('team=other'), cluster: 'milan', limit: 200 };
  expect((await control.peerings.list(admin, together)).items).toHaveLength(200);
  expect((await control.peerings.list(admin, { ...together, cluster: 'turin' })).items).toEqual([]);
});

test('any selector, read page by page after any changes of labels, finds what a look at every cluster finds', async () => {
  const labels = fc.dictionary(fc.constantFrom('tier', 'tier-2', 'a.b/tier'), fc.constantFrom('', 'gold', 'gold-2'));
  const one = fc.tuple(fc.constantFrom('tier', 'tier-2', 'a.b/tier'), fc.constantFrom('', '=', '=gold', '=gold-2'));
  const selector = fc
    .array(one, { minLength: 1, maxLength: 3 })
    .map((all) => all.map((part) => part.join('')).join(','));
  const names = ['rome', 'milan', 'turin', 'rome-2'];
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...names), labels), { maxLength: 10 }),
      selector,
      fc.integer({ min: 1, max: 3 }),
      async (changes, text, limit) => {
        const { control, store, join } = started();
        for (const name of names) await join(name);
        for (const [name, next] of changes) await control.clusters.label(admin, name, { labels: next });
        expect(await placesOf(store, 'default')).toEqual(await wantedPlaces(store, 'default'));
        const wanted = parseSelector(text);
        const found: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await control.clusters.list(admin, { labels: wanted, limit, ...(cursor && { cursor }) });
          found.push(...page.items.map(({ id }) => id));
          cursor = page.cursor;
        } while (cursor !== undefined);
        const all = (await control.clusters.list(admin)).items.filter((item) => selects(wanted, item.labels));
        expect(found.sort()).toEqual(all.map(({ id }) => id).sort());
      },
    ),
    { numRuns: 60 },
  );
});
