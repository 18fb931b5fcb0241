import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { createMemoryStore } from '../adapters/memory/memory-store.ts';
import { countingReads } from '../testing/counting-store.ts';
import { everyItem } from './every-item.ts';

async function seven() {
  const counted = countingReads(createMemoryStore({ clock: new ManualClock() }));
  for (const sk of 'abcdefg') await counted.store.transact([{ op: 'put', pk: 'p', sk, value: sk }]);
  return counted;
}

test('a range is read whole, a page at a time, and no page more than is taken', async () => {
  const { store, of } = await seven();
  const range = { partition: 'p', from: 'b', to: 'g', atOnce: 2 };
  const read = async (most: number) => {
    const found: string[] = [];
    for await (const { value } of everyItem<string>(store, range)) {
      found.push(value);
      if (found.length === most) break;
    }
    expect(found).toEqual([...'bcdef'].slice(0, most));
  };
  expect(await of(() => read(9))).toEqual({ requests: 3, items: 5 });
  expect(await of(() => read(2))).toEqual({ requests: 1, items: 2 });
});

test('items that are removed while they are read hide none of the others', async () => {
  const { store } = await seven();
  const found: string[] = [];
  for await (const { pk, sk, version } of everyItem(store, { partition: 'p', atOnce: 2 })) {
    found.push(sk);
    await store.transact([{ op: 'delete', pk, sk, ifVersion: version }]);
  }
  expect(found.join('')).toBe('abcdefg');
});
