/** How much of each offered class a consumer can still have: its offer, with the largest claim that would be made now. */
import { csiCapacityCache, csiDriverCache, isOurCapacity, largestInNodes } from '#agent/model/storage-capacity.ts';
import type { Cache, Caches, Watch } from '#kube/model/types.ts';
import { watch } from '#kube/run/controller.ts';
import type { CsiDriver, CsiStorageCapacity, StorageClass } from '#shared/domain/core-kinds.ts';
import { keyOf, type Node } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, amountsOf, showAmount } from '#shared/domain/pod-resources.ts';
import type { Resources } from '#shared/domain/quantity.ts';
import type { StorageType } from '#shared/schema/definition/fields.ts';
import { type Quota, quotas } from '#shared/schema/liqo/quota.ts';
import { isStorageResource, storageLimits, storageResources } from './storage-offer.ts';

export interface Room {
  /** Of all slices of the consumer together. */
  readonly limits: Amounts;
  readonly used: Amounts;
  /** What one segment of the nodes here has of a class; undefined: its driver is not asked. */
  readonly inNodes: (className: string) => bigint | undefined;
}

export interface Supply {
  readonly classes: readonly StorageClass[];
  readonly drivers: readonly CsiDriver[];
  readonly capacities: readonly CsiStorageCapacity[];
  /** Those of this cluster. */
  readonly nodes: readonly Node[];
}

/** For `Room`: computed once for each class, also where many consumers are offered it. */
export function largestOf({ classes, drivers, capacities, nodes }: Supply): Room['inNodes'] {
  const usable = nodes.filter(({ spec }) => spec?.unschedulable !== true);
  const known = new Map<string, bigint | undefined>();
  return (className) => {
    if (!known.has(className)) {
      const storageClass = classes.find(({ metadata }) => metadata.name === className);
      known.set(className, storageClass && largestInNodes(storageClass, drivers, capacities, usable));
    }
    return known.get(className);
  };
}

const least = (amounts: readonly bigint[]): bigint | undefined =>
  amounts.length === 0 ? undefined : amounts.reduce((a, b) => (a < b ? a : b));

/** In 10^-9 bytes; undefined: nothing limits it, or nothing is known. */
export function largestClaim(className: string, room: Room): bigint | undefined {
  const { limits, used, inNodes } = room;
  const names = storageResources(className);
  const left = (name: string): bigint[] => {
    const limit = ownMember(limits, name);
    if (limit === undefined) return [];
    const taken = ownMember(used, name) ?? 0n;
    return [limit > taken ? limit - taken : 0n];
  };
  const isFull = names.claims.flatMap(left).some((number) => number === 0n);
  const ofDriver = inNodes(className);
  return least([...(isFull ? [0n] : []), ...names.bytes.flatMap(left), ...(ofDriver === undefined ? [] : [ofDriver])]);
}

export const withRoom = (offered: readonly StorageType[], room: Room): StorageType[] =>
  offered.map((one) => {
    const largest = largestClaim(one.storageClassName, room);
    return largest === undefined ? one : { ...one, maximumVolumeSize: showAmount('storage', largest) };
  });

/** As each Quota of a consumer says it, a moment apart: what its claims take, all slices together. */
function usedOf(limits: readonly Quota[]): Amounts {
  const used = new Map<string, bigint>();
  for (const { status } of limits)
    for (const [name, amount] of Object.entries(amountsOf(status?.used)))
      if (isStorageResource(name) && amount > (used.get(name) ?? 0n)) used.set(name, amount);
  return Object.fromEntries(used);
}

export interface StorageRoom {
  /** What may change the room, of one consumer, or of all: undefined. Pods of guests, which change Quotas as well, do not. */
  readonly watches: (keyOf: (consumer: string | undefined) => string) => readonly Watch[];
  /** `grants`: of all slices of this consumer. */
  readonly offer: (
    offered: readonly StorageType[],
    consumer: string,
    grants: readonly Resources[],
  ) => readonly StorageType[];
}

/** The last result, until one of the lists is another one: a cache has the same list as long as nothing in it changes. */
function untilChanged<A extends readonly unknown[], R>(compute: (...lists: A) => R): (...lists: A) => R {
  let last: { readonly lists: A; readonly result: R } | undefined;
  return (...lists) => {
    if (last === undefined || lists.some((list, at) => list !== last?.lists[at]))
      last = { lists, result: compute(...lists) };
    return last.result;
  };
}

const consumerOf = ({ metadata }: Quota): string => metadata.labels?.[label.remoteClusterId] ?? '';

function byConsumer(all: readonly Quota[]): ReadonlyMap<string, readonly Quota[]> {
  const found = new Map<string, Quota[]>();
  for (const quota of all) {
    const others = found.get(consumerOf(quota));
    if (others === undefined) found.set(consumerOf(quota), [quota]);
    else others.push(quota);
  }
  return found;
}

export function createStorageRoom(
  caches: Caches,
  { classes, nodes }: { readonly classes: Cache<StorageClass>; readonly nodes: Cache<Node> },
): StorageRoom {
  const limits = caches.cache(quotas);
  const drivers = csiDriverCache(caches);
  const capacities = csiCapacityCache(caches);
  const quotasNow = untilChanged(byConsumer);
  const inNodesNow = untilChanged(
    (all: Supply['classes'], by: Supply['drivers'], free: Supply['capacities'], on: Supply['nodes']) =>
      largestOf({ classes: all, drivers: by, capacities: free, nodes: on }),
  );
  /** Of each Quota: what it last said of storage. */
  const said = new Map<string, string>();
  const isNews = (quota: Quota): boolean => {
    const used = JSON.stringify(Object.entries(quota.status?.used ?? {}).filter(([name]) => isStorageResource(name)));
    const before = said.get(keyOf(quota));
    said.set(keyOf(quota), used);
    return used !== before;
  };
  return {
    watches: (key) => [
      watch(limits, (quota) => (isNews(quota) ? [key(consumerOf(quota))] : [])),
      watch(drivers, () => [key(undefined)]),
      watch(capacities, (one) => (isOurCapacity(one) ? [] : [key(undefined)])),
    ],
    offer: (offered, consumer, grants) =>
      withRoom(offered, {
        limits: storageLimits(grants),
        used: usedOf(quotasNow(limits.list()).get(consumer) ?? []),
        inNodes: inNodesNow(classes.list(), drivers.list(), capacities.list(), nodes.list()),
      }),
  };
}
