/** Two API servers on which volumes can be made: one real node with class `disk` here, class `fast` at the provider, and the classes of Isthmus. */
import { typeOf } from '#cli/install/apply.ts';
import { storageManifests } from '#cli/install/storage-manifests.ts';
import { nodes } from '#shared/domain/core-kinds.ts';
import { type OffloadingClusters, startOffloadingClusters } from './offloading-clusters.ts';
import { provisionVolumes, type VolumeProvisioner } from './volume-provisioner.ts';

export interface StorageClusters {
  readonly world: OffloadingClusters;
  /** What makes the volumes of class `disk`. */
  readonly here: VolumeProvisioner;
  /** And those of class `fast` at the provider. */
  readonly there: VolumeProvisioner;
}

/** Namespace `shop` is offloaded; no class is the default one. */
export async function startStorageClusters(): Promise<StorageClusters> {
  const world = await startOffloadingClusters(['shop']);
  const { consumer, provider } = world;
  await consumer.api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' } } as never);
  const here = await provisionVolumes(consumer, { className: 'disk', isDefault: false, waitsForNode: true });
  const there = await provisionVolumes(provider, { className: 'fast', isDefault: false });
  for (const object of storageManifests({ className: 'liqo', capacityClassName: 'isthmus', isDefault: false }))
    await consumer.api.apply(typeOf(object), object, { fieldManager: 'isthmus-cli' });
  return { world, here, there };
}

/** A Node of the provider, as its agent would have made it. */
export async function addVirtualNode({ consumer }: OffloadingClusters): Promise<void> {
  const labels = { 'liqo.io/type': 'virtual-node', 'liqo.io/remote-cluster-id': 'prov' };
  await consumer.api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'vn1', labels } } as never);
}
