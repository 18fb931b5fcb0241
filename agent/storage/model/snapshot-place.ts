/** In which cluster a snapshot is. Pure. */
import { remoteSnapshotOf } from '#shared/domain/snapshot-keys.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#shared/domain/snapshot-kinds.ts';
import { remoteVolumeDriver } from '#shared/domain/storage-keys.ts';

/** The provider that has the snapshot of this content; undefined: this cluster. */
export const snapshotProvider = ({ spec, status }: VolumeSnapshotContent): string | undefined =>
  spec.driver === remoteVolumeDriver
    ? remoteSnapshotOf(status?.snapshotHandle ?? spec.source.snapshotHandle ?? spec.source.volumeHandle ?? '')?.provider
    : undefined;

export interface Pair {
  readonly snapshot?: VolumeSnapshot | undefined;
  /** What the snapshot names as its content. */
  readonly content?: VolumeSnapshotContent | undefined;
}

/** The content; undefined: it is not bound to this very snapshot. */
export function contentOf({ snapshot, content }: Pair): VolumeSnapshotContent | undefined {
  const { uid } = snapshot?.metadata ?? {};
  return uid !== undefined && content?.spec.volumeSnapshotRef.uid === uid ? content : undefined;
}
