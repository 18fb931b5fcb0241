/** Counters of a tenant beside what they count, item by item: for tests that compare the two. */
import type { ClusterRecord } from '../model/cluster.ts';
import type { PeeringRecord } from '../model/peering-records.ts';
import type { Store } from '../ports/store.ts';
import { key, partition } from '../store/keys.ts';

interface Counts {
  readonly clusters: number;
  readonly peerings: number;
}

export async function countersOf(store: Store, tenant: string): Promise<Counts> {
  const read = async (what: keyof Counts): Promise<number> => {
    const { pk, sk } = key.count(tenant, what);
    return (await store.get<number>(pk, sk))?.value ?? 0;
  };
  return { clusters: await read('clusters'), peerings: await read('peerings') };
}

export async function countedItems(store: Store, tenant: string): Promise<Counts> {
  const clusters = await everyItem<ClusterRecord>(store, partition.clusters(tenant));
  const peerings = await everyItem<PeeringRecord>(store, partition.peerings(tenant));
  return {
    clusters: clusters.filter(({ state }) => state === 'joined').length,
    peerings: peerings.filter(({ state }) => state.phase !== 'Gone').length,
  };
}

async function everyItem<T>(store: Store, partitionKey: string): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.query<T>({
      partition: partitionKey,
      limit: 200,
      ...(cursor === undefined ? {} : { cursor }),
    });
    found.push(...page.items.map(({ value }) => value));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}
