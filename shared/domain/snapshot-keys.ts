/** Names and marks of snapshots at providers: what the consumer writes on a VolumeSnapshot there, and what the provider reads. */
import { type HomeClaim, type RemoteClaim, remoteClaimOf, volumeHandle } from './storage-keys.ts';

const snapshotAnnotation = {
  /** On a VolumeSnapshot at the provider: `<namespace>/<name>` of the one of the consumer that it is for. */
  snapshot: 'isthmus.dev/snapshot',
  /** On a VolumeSnapshot at the provider: UID of that VolumeSnapshot. */
  snapshotUid: 'isthmus.dev/snapshot-uid',
} as const;

/** Label of a VolumeSnapshotContent that lends a snapshot of this cluster to a real claim: UID of the claim that is to be made of it. */
export const importLabel = 'isthmus.dev/restores-claim';

/** A VolumeSnapshot of the consumer. */
export type HomeSnapshot = HomeClaim;

export const snapshotAnnotations = ({ namespace, name, uid }: HomeSnapshot): Record<string, string> => ({
  [snapshotAnnotation.snapshot]: `${namespace}/${name}`,
  [snapshotAnnotation.snapshotUid]: uid,
});

/** Undefined: not one that a consumer's agent has made. */
export function homeSnapshotOf(annotations: Readonly<Record<string, string>> | undefined): HomeSnapshot | undefined {
  const [namespace, name, ...more] = (annotations?.[snapshotAnnotation.snapshot] ?? '').split('/');
  const uid = annotations?.[snapshotAnnotation.snapshotUid];
  return namespace && name && uid && more.length === 0 ? { namespace, name, uid } : undefined;
}

/** A VolumeSnapshot at a provider, named as volumes there are. */
export type RemoteSnapshot = RemoteClaim;
export const snapshotHandle: (at: RemoteSnapshot) => string = volumeHandle;
/** Undefined: not one of ours. */
export const remoteSnapshotOf: (handle: string) => RemoteSnapshot | undefined = remoteClaimOf;

/** What the VolumeSnapshot at the provider is called for that of the consumer. */
export const remoteSnapshotName = (uid: string): string => `snapshot-${uid}`;
