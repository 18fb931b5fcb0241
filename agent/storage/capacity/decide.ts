/**
 * What kube-scheduler is to believe of free storage for classes of provisioner `storage.isthmus.dev`: for nodes of this cluster what their own class has,
 * for virtual nodes what their provider says. Pure.
 */
import { createHash } from 'node:crypto';
import { isMeasured, isOurCapacity, largestBy } from '#agent/model/storage-capacity.ts';
import type { CsiDriver, CsiStorageCapacity, StorageClass } from '#shared/domain/core-kinds.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { LabelSelector } from '#shared/domain/node-selector.ts';
import { showAmount } from '#shared/domain/pod-resources.ts';
import { type Nanos, tryParseQuantity } from '#shared/domain/quantity.ts';
import { driverLabel, remoteVolumeDriver, storageNamespace } from '#shared/domain/storage-keys.ts';
import type { StorageType } from '#shared/schema/definition/fields.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { localClassOf } from '../model/classes.ts';

/** Where nothing limits a claim, or nothing is known of what does: more than any claim asks for. */
export const unlimited = '1Ei';

export interface Facts {
  readonly classes: readonly StorageClass[];
  readonly drivers: readonly CsiDriver[];
  /** Of all drivers. */
  readonly capacities: readonly CsiStorageCapacity[];
  readonly virtualNodes: readonly VirtualNode[];
}

const digits = 16;

/** Class and topology never change, so they are the name. */
function capacityOf(storageClassName: string, nodeTopology: LabelSelector, capacity: string): CsiStorageCapacity {
  const content = JSON.stringify([storageClassName, nodeTopology]);
  const name = `isthmus-${createHash('sha256').update(content).digest('hex').slice(0, digits)}`;
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIStorageCapacity',
    metadata: { namespace: storageNamespace, name, labels: { [driverLabel]: remoteVolumeDriver } },
    storageClassName,
    nodeTopology: nodeTopology as NonNullable<CsiStorageCapacity['nodeTopology']>,
    capacity,
  };
}

const notVirtual = { key: label.type, operator: 'DoesNotExist' } as const;

/** On nodes of this cluster: where its class is measured, segment by segment as that says; without a class, nothing. */
function localCapacities(virtual: StorageClass, { classes, drivers, capacities }: Facts): CsiStorageCapacity[] {
  const local = localClassOf(virtual, classes);
  const { name } = virtual.metadata;
  if (local === undefined) return [];
  if (!isMeasured(local, drivers)) return [capacityOf(name, { matchExpressions: [notVirtual] }, unlimited)];
  const largest = new Map<string, CsiStorageCapacity>();
  for (const one of capacities) {
    const bytes = largestBy(one);
    if (one.storageClassName !== local.metadata.name || one.nodeTopology === undefined || bytes === undefined) continue;
    const { matchLabels, matchExpressions = [] } = one.nodeTopology as LabelSelector;
    const topology = { ...(matchLabels && { matchLabels }), matchExpressions: [...matchExpressions, notVirtual] };
    const wanted = capacityOf(name, topology, showAmount('storage', bytes));
    const other = largest.get(wanted.metadata.name);
    if (other === undefined || (largestBy(other) ?? 0n) < bytes) largest.set(wanted.metadata.name, wanted);
  }
  return [...largest.values()];
}

/** Providers write what they like; API servers take no negative capacity, and give back a huge one as another one. */
function sizeOf({ maximumVolumeSize = unlimited }: StorageType): Nanos {
  const [said = 0n, most = 0n] = [maximumVolumeSize, unlimited].map(tryParseQuantity);
  return said < 0n ? 0n : said > most ? most : said;
}

/** Of the class that a claim gets which names none; where it would have to name one, of the one with the most room. Undefined: none is offered. */
function largestAt(offered: readonly StorageType[]): Nanos | undefined {
  const preset = offered.find((one) => one.default);
  return (preset ? [preset] : offered)
    .map(sizeOf)
    .reduce<Nanos | undefined>((most, one) => (most === undefined || one > most ? one : most), undefined);
}

/** All virtual nodes of a provider share what it grants. */
function remoteCapacities(virtual: StorageClass, { virtualNodes }: Facts): CsiStorageCapacity[] {
  const living = virtualNodes.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const providers = [...new Set(living.map(({ spec }) => spec.clusterID))].sort();
  return providers.flatMap((provider) => {
    const sizes = living
      .filter(({ spec }) => spec.clusterID === provider)
      .flatMap(({ spec }) => largestAt(spec.storageClasses ?? []) ?? []);
    const least = sizes.reduce<Nanos | undefined>((a, b) => (a === undefined || b < a ? b : a), undefined);
    if (least === undefined) return [];
    const topology = { matchLabels: { [label.remoteClusterId]: provider } };
    return [capacityOf(virtual.metadata.name, topology, showAmount('storage', least))];
  });
}

export const wantedCapacities = (facts: Facts): CsiStorageCapacity[] =>
  facts.classes
    .filter(({ provisioner }) => provisioner === remoteVolumeDriver)
    .flatMap((virtual) => [...localCapacities(virtual, facts), ...remoteCapacities(virtual, facts)]);

export type Action =
  | { readonly do: 'create'; readonly object: CsiStorageCapacity }
  | { readonly do: 'resize'; readonly object: CsiStorageCapacity; readonly capacity: string }
  | { readonly do: 'remove'; readonly object: CsiStorageCapacity };

const amount = (text: string | undefined): Nanos | undefined =>
  text === undefined ? undefined : tryParseQuantity(text);

export function decide(facts: Facts): Action[] {
  const wanted = new Map(wantedCapacities(facts).map((object) => [object.metadata.name, object]));
  const ours = facts.capacities.filter(isOurCapacity);
  const there = new Set(ours.map(({ metadata }) => metadata.name));
  return [
    ...ours.flatMap((object): Action[] => {
      const { capacity } = wanted.get(object.metadata.name) ?? {};
      if (capacity === undefined) return [{ do: 'remove', object }];
      const isSame = amount(object.capacity) === amount(capacity) && object.maximumVolumeSize === undefined;
      return isSame ? [] : [{ do: 'resize', object, capacity }];
    }),
    ...[...wanted.values()]
      .filter(({ metadata }) => !there.has(metadata.name))
      .map((object): Action => ({ do: 'create', object })),
  ];
}
