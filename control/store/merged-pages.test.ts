import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { createMemoryStore } from '../adapters/memory/memory-store.ts';
import type { Store } from '../ports/store.ts';
import { countingReads, type Reads } from '../testing/counting-store.ts';
import { directoryShards, key, partition } from './keys.ts';
import { mergedPageOf } from './merged-pages.ts';

const all = Array.from({ length: directoryShards }, (_, shard) => partition.published(shard));

async function filled(entries: readonly (readonly [string, string])[]): Promise<Store> {
  const store = createMemoryStore({ clock: new ManualClock() });
  for (const [tenant, cluster] of entries)
    await store.transact([{ op: 'put', ...key.published(tenant, cluster), value: `${tenant}/${cluster}` }]);
  return store;
}

async function readAll(store: Store, limit: number, shows: (value: string) => boolean) {
  const found: string[] = [];
  const reads: Reads[] = [];
  const counted = countingReads(store);
  let cursor: string | undefined;
  do {
    let items: readonly string[] = [];
    const request = { limit, ...(cursor && { cursor }) };
    reads.push(
      await counted.of(async () => {
        const page = await mergedPageOf<string, string>(counted.store, all, request, ({ value }) =>
          shows(value) ? value : undefined,
        );
        ({ items, cursor } = page);
      }),
    );
    expect(items.length).toBeLessThanOrEqual(limit);
    found.push(...items);
  } while (cursor !== undefined);
  return { found, reads };
}

test('pages of all partitions, read to the end, have every entry that is not hidden, once and in order', async () => {
  const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?$/);
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.tuple(name, name), { maxLength: 300, selector: (pair) => pair.join('/') }),
      fc.integer({ min: 1, max: 200 }),
      fc.constantFrom(1, 2, 60),
      async (entries, limit, everyNth) => {
        const store = await filled(entries);
        const shows = (value: string): boolean => value.length % everyNth === 0;
        const { found } = await readAll(store, limit, shows);
        const expected = entries.map((pair) => pair.join('/')).filter(shows);
        expect(found).toEqual(expected.sort((a, b) => (a < b ? -1 : 1)));
      },
    ),
    { numRuns: 100 },
  );
});

const thousands = Array.from({ length: 4_000 }, (_, i) => [`t-${i % 90}`, `c-${i}`] as const);

test('entries of one tenant and of many lie in all partitions, about as many in each', async () => {
  for (const entries of [thousands, thousands.map(([, cluster]) => ['one', cluster] as const)]) {
    const store = await filled(entries);
    for (const pk of all) {
      const { items } = await store.query({ partition: pk, limit: 4_000 });
      expect(items.length).toBeGreaterThan(350);
      expect(items.length).toBeLessThan(650);
    }
  }
});

test('a request reads a bounded number of entries, with a filter that hides all of them too', async () => {
  const store = await filled(thousands);
  const open = await readAll(store, 50, () => true);
  // The page, and what the others of the eight partitions had ready.
  for (const { items } of open.reads) expect(items).toBeLessThanOrEqual(50 + directoryShards * 11);
  const closed = await readAll(store, 1, () => false);
  for (const { items, requests } of closed.reads) {
    expect(items).toBeLessThanOrEqual(401 + directoryShards * 17);
    expect(requests).toBeLessThanOrEqual(8 + 401 / 5);
  }
  expect(closed.reads.length).toBeLessThanOrEqual(11);
});
