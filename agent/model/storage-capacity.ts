/** What kube-scheduler believes of free storage: CSIStorageCapacity objects, for drivers that ask for it in their CSIDriver. Pure, but for the caches. */
import type { Cache, Caches } from '#kube/model/types.ts';
import {
  type CsiDriver,
  type CsiStorageCapacity,
  csiDrivers,
  csiStorageCapacities,
  type StorageClass,
} from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { type LabelSelector, selectsLabels } from '#shared/domain/node-selector.ts';
import { type Nanos, tryParseQuantity } from '#shared/domain/quantity.ts';
import { driverLabel, remoteVolumeDriver, storageNamespace } from '#shared/domain/storage-keys.ts';

function leanCapacity(object: CsiStorageCapacity): CsiStorageCapacity {
  const { apiVersion, kind, metadata, storageClassName, nodeTopology, capacity, maximumVolumeSize } = object;
  const { ownerReferences: _, ...rest } = metadata;
  return {
    apiVersion,
    kind,
    metadata: rest,
    storageClassName,
    ...(nodeTopology !== undefined && { nodeTopology }),
    ...(capacity !== undefined && { capacity }),
    ...(maximumVolumeSize !== undefined && { maximumVolumeSize }),
  };
}

export const csiDriverCache = (caches: Caches): Cache<CsiDriver> => caches.cache(csiDrivers);
/** Of all drivers, ours included. */
export const csiCapacityCache = (caches: Caches): Cache<CsiStorageCapacity> =>
  caches.cache(csiStorageCapacities, { transform: leanCapacity });

/** What this agent says of virtual classes, which are offered to no consumer. */
export const isOurCapacity = ({ metadata }: CsiStorageCapacity): boolean =>
  metadata.namespace === storageNamespace && metadata.labels?.[driverLabel] === remoteVolumeDriver;

/** Whether the scheduler compares claims of this class with what its driver says is free. */
export const isMeasured = ({ provisioner }: StorageClass, drivers: readonly CsiDriver[]): boolean =>
  drivers.some(({ metadata, spec }) => metadata.name === provisioner && spec?.storageCapacity === true);

/** The largest claim that fits by this object, as the scheduler reads it; undefined: it says nothing, so none fits. */
export function largestBy({ capacity, maximumVolumeSize }: CsiStorageCapacity): Nanos | undefined {
  const text = maximumVolumeSize ?? capacity;
  return text === undefined ? undefined : tryParseQuantity(text);
}

/** Of a class whose driver is measured: the largest claim that one of these nodes has room for. Undefined: the driver is not measured. */
export function largestInNodes(
  storageClass: StorageClass,
  drivers: readonly CsiDriver[],
  capacities: readonly CsiStorageCapacity[],
  nodes: readonly Node[],
): Nanos | undefined {
  if (!isMeasured(storageClass, drivers)) return undefined;
  let most: Nanos = 0n;
  for (const one of capacities) {
    if (one.storageClassName !== storageClass.metadata.name) continue;
    const here = largestBy(one) ?? 0n;
    // First the size: there may be a segment for each of thousands of nodes, and their labels are compared only for a larger one.
    if (here <= most) continue;
    const topology = one.nodeTopology as LabelSelector | undefined;
    if (nodes.some(({ metadata }) => selectsLabels(topology, metadata.labels))) most = here;
  }
  return most;
}
