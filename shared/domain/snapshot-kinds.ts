/** Kubernetes' VolumeSnapshots: kinds that a cluster serves once its administrator has installed them, and what its snapshot controller writes on them. */
import type { KubeObject, KubeResource, ResourceType } from './kube-object.ts';

export const snapshotGroup = 'snapshot.storage.k8s.io';

interface VolumeSnapshotSpec {
  /** One of both: it is to be taken of that claim, or stands for what that content says. */
  readonly source?: {
    readonly persistentVolumeClaimName?: string;
    readonly volumeSnapshotContentName?: string;
  };
  readonly volumeSnapshotClassName?: string;
}
export interface SnapshotError {
  readonly message?: string;
  /** RFC 3339. */
  readonly time?: string;
}
interface VolumeSnapshotStatus {
  readonly boundVolumeSnapshotContentName?: string;
  /** RFC 3339. */
  readonly creationTime?: string;
  readonly readyToUse?: boolean;
  /** A quantity. */
  readonly restoreSize?: string;
  readonly error?: SnapshotError;
}
export type VolumeSnapshot = KubeResource<VolumeSnapshotSpec, VolumeSnapshotStatus>;

interface VolumeSnapshotContentSpec {
  readonly deletionPolicy: 'Delete' | 'Retain';
  readonly driver: string;
  /** One of both: it is taken of that volume, or is there already. */
  readonly source: { readonly volumeHandle?: string; readonly snapshotHandle?: string };
  readonly sourceVolumeMode?: string;
  readonly volumeSnapshotClassName?: string;
  readonly volumeSnapshotRef: { readonly namespace?: string; readonly name?: string; readonly uid?: string };
}
export interface VolumeSnapshotContentStatus {
  readonly snapshotHandle?: string;
  readonly readyToUse?: boolean;
  /** Nanoseconds since 1970. */
  readonly creationTime?: number;
  /** Bytes. */
  readonly restoreSize?: number;
  readonly error?: SnapshotError;
}
export type VolumeSnapshotContent = KubeResource<VolumeSnapshotContentSpec, VolumeSnapshotContentStatus>;

export type VolumeSnapshotClass = KubeObject & {
  readonly driver: string;
  readonly deletionPolicy: 'Delete' | 'Retain';
  readonly parameters?: Readonly<Record<string, string>>;
};

const kind = <T extends KubeObject>(name: string, plural: string, namespaced: boolean): ResourceType<T> => ({
  group: snapshotGroup,
  version: 'v1',
  kind: name,
  plural,
  namespaced,
});

export const volumeSnapshots = kind<VolumeSnapshot>('VolumeSnapshot', 'volumesnapshots', true);
export const volumeSnapshotContents = kind<VolumeSnapshotContent>(
  'VolumeSnapshotContent',
  'volumesnapshotcontents',
  false,
);
export const volumeSnapshotClasses = kind<VolumeSnapshotClass>('VolumeSnapshotClass', 'volumesnapshotclasses', false);

/** Finalizers and annotations of Kubernetes' snapshot controller begin with it. */
export const snapshotControllerPrefix = 'snapshot.storage.kubernetes.io/';
/** Of a content, by the snapshot controller; taken off by the component that takes the driver's snapshots, once nothing of it is left. */
export const contentFinalizer = `${snapshotControllerPrefix}volumesnapshotcontent-bound-protection`;
/** On a content, by the snapshot controller: its VolumeSnapshot is being deleted. Without it the content of one alone is never taken down. */
export const beingDeleted = `${snapshotControllerPrefix}volumesnapshot-being-deleted`;

/** What the snapshot controller calls the content of a VolumeSnapshot of a claim. */
export const contentNameOf = (snapshotUid: string): string => `snapcontent-${snapshotUid}`;

/** The name of its content, also of one of which the snapshot controller has not said so yet. */
export const contentNameFor = ({ metadata, status }: VolumeSnapshot): string =>
  status?.boundVolumeSnapshotContentName || contentNameOf(metadata.uid ?? '');

/** Where the storage has the snapshot of this content; undefined: it has not been taken yet. */
export const handleOf = ({ spec, status }: VolumeSnapshotContent): string | undefined =>
  status?.snapshotHandle ?? spec.source.snapshotHandle;
