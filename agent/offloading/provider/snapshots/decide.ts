/**
 * What becomes of the data of a VolumeSnapshot of a guest. Kubernetes' snapshot controller takes the content down as soon as the VolumeSnapshot is deleted,
 * also while a finalizer of ours holds that; so a content keeps its data from the beginning, and the agent deletes it when the consumer has ordered that. Pure.
 */
import { timestamp } from '#kube/writes/conditions.ts';
import { guestSnapshot, guestVolume, keptAnnotation } from '#shared/domain/guest-volume-keys.ts';
import { homeSnapshotOf } from '#shared/domain/snapshot-keys.ts';
import {
  beingDeleted,
  snapshotControllerPrefix,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from '#shared/domain/snapshot-kinds.ts';
import { storageAnnotation, storageData } from '#shared/domain/storage-keys.ts';

/** A merge patch of the content; it is conditional on the version that was read. */
type ContentPatch = Readonly<Record<string, unknown>>;

export type SnapshotDecision =
  | { readonly do: 'nothing' }
  /** From then on its data outlives the VolumeSnapshot. */
  | { readonly do: 'guard'; readonly patch: ContentPatch }
  /** The finalizer may go. `first`: a write to its content that comes before. `keeps`: its data stays by that content. */
  | { readonly do: 'release'; readonly first?: ContentPatch; readonly keeps?: true }
  /** By order: the content is given the policy Delete, then deleted. */
  | { readonly do: 'arm'; readonly patch: ContentPatch }
  | { readonly do: 'erase' }
  | { readonly do: 'wait'; readonly on: string };

export interface SnapshotFacts {
  readonly snapshot: VolumeSnapshot;
  readonly consumer: string;
  /** As the API server has it now. */
  readonly content: VolumeSnapshotContent | undefined;
  readonly nowMs: number;
}

const conditional = (
  { metadata }: VolumeSnapshotContent,
  patch: { readonly metadata?: object; readonly spec?: object },
): ContentPatch => ({
  ...patch,
  metadata: { uid: metadata.uid, resourceVersion: metadata.resourceVersion, ...patch.metadata },
});

/** The policy that the content had before it was made to keep its data. */
const policyOf = ({ metadata, spec }: VolumeSnapshotContent): string =>
  metadata.annotations?.[keptAnnotation.policy] ?? spec.deletionPolicy;

/** It says already for whom its data stays; the finalizer of its VolumeSnapshot may be there still. */
const isReleased = ({ metadata }: VolumeSnapshotContent, consumer: string): boolean =>
  metadata.labels?.[guestVolume.keptFor] === consumer;

/** Undefined: it keeps its data already, is going, or is not of this snapshot. */
export function guardPatch({ snapshot, consumer, content }: Omit<SnapshotFacts, 'nowMs'>): ContentPatch | undefined {
  if (content === undefined || content.spec.volumeSnapshotRef.uid !== snapshot.metadata.uid) return undefined;
  const { labels, annotations, deletionTimestamp } = content.metadata;
  const isMarked = labels?.[guestVolume.label] === consumer || isReleased(content, consumer);
  const isGuarded =
    isMarked && annotations?.[keptAnnotation.policy] !== undefined && content.spec.deletionPolicy === 'Retain';
  if (isGuarded || deletionTimestamp !== undefined) return undefined;
  const home = homeSnapshotOf(snapshot.metadata.annotations);
  const counts = snapshot.metadata.annotations?.[guestSnapshot.counts];
  return conditional(content, {
    metadata: {
      labels: { [guestVolume.label]: consumer },
      annotations: {
        [keptAnnotation.policy]: policyOf(content),
        ...(home !== undefined && { [keptAnnotation.claim]: JSON.stringify(home) }),
        ...(counts !== undefined && { [guestSnapshot.counts]: counts }),
      },
    },
    spec: { deletionPolicy: 'Retain' },
  });
}

export function decideSnapshot(facts: SnapshotFacts): SnapshotDecision {
  const { snapshot, consumer, nowMs } = facts;
  const { metadata } = snapshot;
  const content = facts.content?.spec.volumeSnapshotRef.uid === metadata.uid ? facts.content : undefined;
  const isGoing = metadata.deletionTimestamp !== undefined;
  if (isGoing && !metadata.finalizers?.includes(guestSnapshot.finalizer)) return { do: 'nothing' };
  const isOrdered =
    metadata.annotations?.[storageAnnotation.data] === storageData.delete &&
    content !== undefined &&
    policyOf(content) === 'Delete';
  // A content that was armed has the policy Delete by our own hand.
  const guard = isGoing && isOrdered ? undefined : guardPatch({ ...facts, content });
  if (guard !== undefined) return { do: 'guard', patch: guard };
  // While the snapshot controller holds it, a claim may be being made of it.
  const isHeld = metadata.finalizers?.some((finalizer) => finalizer.startsWith(snapshotControllerPrefix)) ?? false;
  if (!isGoing || isHeld) return { do: 'nothing' };
  if (content === undefined) return { do: 'release' };
  if (content.metadata.deletionTimestamp !== undefined)
    return { do: 'wait', on: `VolumeSnapshotContent ${content.metadata.name} to go` };
  if (!isOrdered) {
    const first = conditional(content, {
      metadata: {
        labels: { [guestVolume.label]: null, [guestVolume.keptFor]: consumer },
        annotations: { [keptAnnotation.since]: timestamp(nowMs) },
      },
    });
    return { do: 'release', keeps: true, ...(!isReleased(content, consumer) && { first }) };
  }
  if (content.spec.deletionPolicy === 'Delete') return { do: 'erase' };
  return {
    do: 'arm',
    patch: conditional(content, {
      metadata: {
        annotations: { [keptAnnotation.policy]: policyOf(content), [beingDeleted]: 'yes' },
      },
      spec: { deletionPolicy: 'Delete' },
    }),
  };
}
