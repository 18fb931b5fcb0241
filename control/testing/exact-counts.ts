/** Counters and indexes of a tenant beside what they count and find, item by item: for tests that compare the two. */
import type { AuditRecord } from '../audit/audit.ts';
import { lookupHash } from '../audit/lookup.ts';
import type { ClusterRecord } from '../model/cluster.ts';
import type { PeeringRecord } from '../model/peering-records.ts';
import type { Item, Key, Store } from '../ports/store.ts';
import { everyItem } from '../store/every-item.ts';
import { auditFields, key, partition } from '../store/keys.ts';

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
  const clusters = await itemsOf<ClusterRecord>(store, partition.clusters(tenant));
  const peerings = await itemsOf<PeeringRecord>(store, partition.peerings(tenant));
  return {
    clusters: clusters.filter(({ value }) => value.state === 'joined').length,
    peerings: peerings.filter(({ value }) => value.state.phase !== 'Gone').length,
  };
}

/** Where something is found, with its end. */
type Places = readonly string[];

const placeOf = ({ pk, sk }: Key, expiresAt: number | undefined): string => `${pk} ${sk} ${expiresAt ?? 'stays'}`;

/** What the audit records, clusters and peerings of a tenant should be found by. */
export async function wantedPlaces(store: Store, tenant: string): Promise<Places> {
  const audit = await itemsOf<AuditRecord>(store, partition.audit(tenant));
  const clusters = await itemsOf<ClusterRecord>(store, partition.clusters(tenant));
  const peerings = await itemsOf<PeeringRecord>(store, partition.peerings(tenant));
  const labelled = [
    ...clusters.map((item) => ({ kind: 'cluster' as const, item, labels: item.value.labels })),
    ...peerings.map((item) => ({ kind: 'peering' as const, item, labels: item.value.spec.labels })),
  ];
  return [
    ...audit.flatMap(({ value, expiresAt }) =>
      auditFields.map((field) =>
        placeOf(key.auditBy(tenant, lookupHash(field, value[field]), value.at, value.id), expiresAt),
      ),
    ),
    ...labelled.flatMap(({ kind, item, labels = {} }) =>
      Object.entries(labels).map(([name, value]) =>
        placeOf(key.label(tenant, kind, `${name}=${value}`, item.sk), item.expiresAt),
      ),
    ),
  ].sort();
}

export async function placesOf(store: Store, tenant: string): Promise<Places> {
  const all = await Promise.all([partition.auditBy(tenant), partition.labels(tenant)].map((pk) => itemsOf(store, pk)));
  return all.flatMap((items) => items.map((item) => placeOf(item, item.expiresAt))).sort();
}

async function itemsOf<T>(store: Store, pk: string): Promise<Item<T>[]> {
  const found: Item<T>[] = [];
  for await (const item of everyItem<T>(store, { partition: pk })) found.push(item);
  return found;
}
