/** Everything that sweeps look at, of all tenants. */
import type { Item, Store } from '../ports/store.ts';
import { type DueIndex, dueShards, partition } from '../store/keys.ts';

export async function dueItems(store: Store, index: DueIndex = 'looks'): Promise<Item[]> {
  const items: Item[] = [];
  for (let shard = 0; shard < dueShards; shard += 1)
    items.push(...(await store.query({ partition: partition.due(index, shard), from: '0', limit: 10_000 })).items);
  return items.sort((a, b) => (a.sk < b.sk ? -1 : 1));
}

/** The partition as if what a tenant planned lay with its tenant: `t/TENANT/due` for what lies in `system/due-…`. For tests that watch which tenant is touched. */
export const partitionOfTenant = (pk: string, sk: string): string =>
  pk.startsWith('system/due-') ? `t/${sk.split('/')[1]}/due` : pk === partition.deleting ? `t/${sk}` : pk;
