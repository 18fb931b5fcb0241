/** What a guest's claim may begin with, and what its snapshots are taken of, by the API server: caches may not show yet that one has ended. */
import { getIfServed } from '#kube/model/optional-kind.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import type { ObjectRef } from '#shared/domain/kube-object.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import type { GuestSource } from './claim-source.ts';

/** A claim and the volume that it names. */
export async function readClaimSource(api: KubeApi, ref: ObjectRef, signal: AbortSignal): Promise<GuestSource> {
  const claim = await api.get(persistentVolumeClaims, ref, signal);
  const { volumeName } = claim?.spec ?? {};
  const volume = volumeName ? await api.get(persistentVolumes, { name: volumeName }, signal) : undefined;
  return { claim, volume };
}

/** A VolumeSnapshot and the content that it names. */
export async function readSnapshotSource(api: KubeApi, ref: ObjectRef, signal: AbortSignal): Promise<GuestSource> {
  const snapshot = await getIfServed(api, volumeSnapshots, ref, signal);
  const bound = snapshot?.status?.boundVolumeSnapshotContentName;
  const content = bound ? await api.get(volumeSnapshotContents, { name: bound }, signal) : undefined;
  return { snapshot, content };
}
