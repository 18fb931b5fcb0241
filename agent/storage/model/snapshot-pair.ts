/** Which VolumeSnapshot and which content belong together. Pure. */
import type { VolumeSnapshot, VolumeSnapshotContent } from '#shared/domain/snapshot-kinds.ts';

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
