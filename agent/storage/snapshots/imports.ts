/**
 * A real claim of this cluster stands in another namespace than the VolumeSnapshot of which it is to be made, and a claim names none of another namespace.
 * So the snapshot is lent to it: a second VolumeSnapshotContent of the same handle, with policy Retain, and a VolumeSnapshot beside the real claim. Both go
 * when the claim has its volume. Pure.
 */
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { importLabel } from '#shared/domain/snapshot-keys.ts';
import {
  handleOf,
  snapshotControllerPrefix,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from '#shared/domain/snapshot-kinds.ts';
import { homeClaimOf, storageAnnotation, storageNamespace } from '#shared/domain/storage-keys.ts';

type Claim = PersistentVolumeClaim;

const contentPrefix = 'isthmus-import-';
/** Of the claim with this UID. */
export const importContentName = (claimUid: string): string => `${contentPrefix}${claimUid}`;
/** The inverse; undefined: the name of another content. Also the name of the VolumeSnapshot that is lent. */
export const claimUidOfImport = (contentName: string): string | undefined =>
  contentName.startsWith(contentPrefix) ? contentName.slice(contentPrefix.length) : undefined;

/** Label of a content, by the snapshot controller: the node whose driver it is for. */
const managedBy = `${snapshotControllerPrefix}managed-by`;

const api = { apiVersion: 'snapshot.storage.k8s.io/v1' } as const;

/** `original`: of the VolumeSnapshot that the claim names. */
export function lentContent({ metadata }: Claim, original: VolumeSnapshotContent): VolumeSnapshotContent {
  const { namespace, name, uid = '' } = metadata;
  const { spec } = original;
  const node = original.metadata.labels?.[managedBy];
  return {
    ...api,
    kind: 'VolumeSnapshotContent',
    metadata: {
      name: importContentName(uid),
      // Where each node's driver takes its own snapshots, it says whose this one is.
      labels: { [importLabel]: uid, ...(node !== undefined && { [managedBy]: node }) },
      annotations: { [storageAnnotation.claim]: `${namespace}/${name}`, [storageAnnotation.claimUid]: uid },
    },
    spec: {
      deletionPolicy: 'Retain',
      driver: spec.driver,
      source: { snapshotHandle: handleOf(original) ?? '' },
      ...(spec.sourceVolumeMode !== undefined && { sourceVolumeMode: spec.sourceVolumeMode }),
      ...(spec.volumeSnapshotClassName !== undefined && { volumeSnapshotClassName: spec.volumeSnapshotClassName }),
      volumeSnapshotRef: { namespace: storageNamespace, name: uid },
    },
  };
}

export const lentSnapshot = ({ metadata: { uid = '' } }: Claim): VolumeSnapshot => ({
  ...api,
  kind: 'VolumeSnapshot',
  metadata: { namespace: storageNamespace, name: uid },
  spec: { source: { volumeSnapshotContentName: importContentName(uid) } },
});

export type ImportStep =
  | { readonly do: 'nothing' }
  | { readonly do: 'wait'; readonly on: string; readonly content: VolumeSnapshotContent }
  /** With another policy its end would be that of the user's snapshot. */
  | { readonly do: 'retain'; readonly content: VolumeSnapshotContent }
  | { readonly do: 'removeSnapshot'; readonly snapshot: VolumeSnapshot }
  | { readonly do: 'removeContent'; readonly content: VolumeSnapshotContent };

/** Whether it is one of ours that nothing has begun to remove, when there is no content of its name. */
const isLentAlone = ({ metadata, spec }: VolumeSnapshot): boolean =>
  metadata.deletionTimestamp === undefined &&
  spec.source?.volumeSnapshotContentName === importContentName(metadata.name);

/** As the API server has them now. */
export interface ImportFacts {
  readonly content: VolumeSnapshotContent | undefined;
  /** What the content's annotations name. */
  readonly claim: Claim | undefined;
  /** What the content is bound to, or is to be. */
  readonly snapshot: VolumeSnapshot | undefined;
}

export function decideImport({ content, claim, snapshot }: ImportFacts): ImportStep {
  // Lent by a look at the claim from before it went: the content was gone again before its VolumeSnapshot was made.
  if (content === undefined)
    return snapshot !== undefined && isLentAlone(snapshot) ? { do: 'removeSnapshot', snapshot } : { do: 'nothing' };
  const home = homeClaimOf(content.metadata.annotations);
  const isWanted = claim !== undefined && claim.metadata.uid === home?.uid && !claim.spec?.volumeName;
  if (isWanted) return { do: 'nothing' };
  const isGoing = content.metadata.deletionTimestamp !== undefined;
  if (content.spec.deletionPolicy !== 'Retain') return { do: 'retain', content };
  const isOfContent = snapshot?.spec?.source?.volumeSnapshotContentName === content.metadata.name;
  if (snapshot !== undefined && isOfContent)
    return snapshot.metadata.deletionTimestamp === undefined
      ? { do: 'removeSnapshot', snapshot }
      : { do: 'wait', on: `VolumeSnapshot ${storageNamespace}/${snapshot.metadata.name} to go`, content };
  return isGoing ? { do: 'nothing' } : { do: 'removeContent', content };
}
