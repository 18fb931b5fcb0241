import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { createMemoryStore } from '../adapters/memory/memory-store.ts';
import type { Store } from '../ports/store.ts';
import { pageOf } from './pages.ts';

async function filled(count: number) {
  const store = createMemoryStore({ clock: new ManualClock() });
  const nameOf = (i: number) => String(i).padStart(6, '0');
  for (let i = 0; i < count; i += 1) await store.transact([{ op: 'put', pk: 'p', sk: nameOf(i), value: i }]);
  const reads = { count: 0 };
  const counted: Store = {
    ...store,
    query(query, signal) {
      reads.count += 1;
      return store.query(query, signal);
    },
  };
  return { store: counted, reads };
}

test('a filter that hides nearly everything costs a bounded number of reads for each request', async () => {
  const { store, reads } = await filled(3_000);
  const wanted = ({ value }: { readonly value: number }) => (value === 2_900 ? value : undefined);
  const found: number[] = [];
  let cursor: string | undefined;
  let requests = 0;
  do {
    reads.count = 0;
    const page = await pageOf(store, { partition: 'p' }, { limit: 1, ...(cursor && { cursor }) }, wanted);
    expect(reads.count).toBeLessThanOrEqual(5);
    found.push(...page.items);
    cursor = page.cursor;
    requests += 1;
  } while (cursor !== undefined);
  expect(found).toEqual([2_900]);
  expect(requests).toBeLessThanOrEqual(5);
});

test('pages that are read to the end have every item that is not hidden, once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.boolean(), { maxLength: 700 }),
      fc.integer({ min: 1, max: 200 }),
      async (shown, limit) => {
        const { store } = await filled(shown.length);
        const seen: number[] = [];
        let cursor: string | undefined;
        do {
          const page = await pageOf<number, number>(
            store,
            { partition: 'p' },
            { limit, ...(cursor && { cursor }) },
            ({ value }) => (shown[value] ? value : undefined),
          );
          expect(page.items.length).toBeLessThanOrEqual(limit);
          seen.push(...page.items);
          cursor = page.cursor;
        } while (cursor !== undefined);
        expect(seen).toEqual(shown.flatMap((is, i) => (is ? [i] : [])));
      },
    ),
    { numRuns: 30 },
  );
});
