/** Which volumes and classes are ours, and where the data of a volume is: the same for the agent that makes them and the commands that tell of them. Pure. */
import type { PersistentVolume, StorageClass } from './core-kinds.ts';
import { remoteSnapshotOf } from './snapshot-keys.ts';
import { handleOf, type VolumeSnapshotContent } from './snapshot-kinds.ts';
import {
  isVirtualProvisioner,
  provisionedBy,
  type RemoteClaim,
  remoteClaimOf,
  remoteVolumeDriver,
} from './storage-keys.ts';

export const isVirtual = (storageClass: Pick<StorageClass, 'provisioner'> | undefined): boolean =>
  isVirtualProvisioner(storageClass?.provisioner);

export const isOurVolume = ({ metadata }: Pick<PersistentVolume, 'metadata'>): boolean =>
  isVirtualProvisioner(metadata.annotations?.[provisionedBy]);

/** Undefined: the volume is in this cluster. */
export function remoteOf({ spec }: Pick<PersistentVolume, 'spec'>): RemoteClaim | undefined {
  const csi = spec?.csi;
  return csi?.driver === remoteVolumeDriver ? remoteClaimOf(csi.volumeHandle) : undefined;
}

/** The provider that has the snapshot of this content; undefined: this cluster. */
export const snapshotProvider = (content: VolumeSnapshotContent): string | undefined =>
  content.spec.driver === remoteVolumeDriver
    ? remoteSnapshotOf(handleOf(content) ?? content.spec.source.volumeHandle ?? '')?.provider
    : undefined;
