/** How much of each offered class a consumer can still have: its offer, with the largest claim that would be made now. */
import { csiCapacityCache, csiDriverCache, largestInNodes } from '#agent/model/storage-capacity.ts';
import type { Cache, Caches, Watch } from '#kube/model/types.ts';
import { watch } from '#kube/run/controller.ts';
import type { CsiDriver, CsiStorageCapacity, StorageClass } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
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
  readonly classes: readonly StorageClass[];
  readonly drivers: readonly CsiDriver[];
  readonly capacities: readonly CsiStorageCapacity[];
  /** Those of this cluster. */
  readonly nodes: readonly Node[];
}

const least = (amounts: readonly bigint[]): bigint | undefined =>
  amounts.length === 0 ? undefined : amounts.reduce((a, b) => (a < b ? a : b));

/** In 10^-9 bytes; undefined: nothing limits it, or nothing is known. */
export function largestClaim(className: string, room: Room): bigint | undefined {
  const { limits, used, classes, drivers, capacities, nodes } = room;
  const names = storageResources(className);
  const left = (name: string): bigint[] => {
    const limit = ownMember(limits, name);
    if (limit === undefined) return [];
    const taken = ownMember(used, name) ?? 0n;
    return [limit > taken ? limit - taken : 0n];
  };
  const isFull = names.claims.flatMap(left).some((number) => number === 0n);
  const storageClass = classes.find(({ metadata }) => metadata.name === className);
  const ofDriver = storageClass && largestInNodes(storageClass, drivers, capacities, nodes);
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
  /** What may change the room; `key` is to be looked at then. */
  readonly watches: (key: string) => readonly Watch[];
  /** `grants`: of all slices of this consumer. */
  readonly offer: (
    offered: readonly StorageType[],
    consumer: string,
    grants: readonly Resources[],
  ) => readonly StorageType[];
}

export function createStorageRoom(
  caches: Caches,
  { classes, nodes }: { readonly classes: Cache<StorageClass>; readonly nodes: Cache<Node> },
): StorageRoom {
  const limits = caches.cache(quotas);
  const drivers = csiDriverCache(caches);
  const capacities = csiCapacityCache(caches);
  return {
    watches: (key) => [watch(limits, () => [key]), watch(drivers, () => [key]), watch(capacities, () => [key])],
    offer: (offered, consumer, grants) =>
      withRoom(offered, {
        limits: storageLimits(grants),
        used: usedOf(limits.list().filter(({ metadata }) => metadata.labels?.[label.remoteClusterId] === consumer)),
        classes: classes.list(),
        drivers: drivers.list(),
        capacities: capacities.list(),
        nodes: nodes.list().filter(({ spec }) => spec?.unschedulable !== true),
      }),
  };
}
