/** What becomes of the data of a claim of a guest, while it lives and when it ends. Pure. */
import { timestamp } from '#kube/writes/conditions.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { guestVolume, keptAnnotation } from '#shared/domain/guest-volume-keys.ts';
import { homeClaimOf, storageAnnotation, storageData } from '#shared/domain/storage-keys.ts';
import type { RetainedVolume, RetainedVolumeStatus } from '#shared/schema/isthmus/retained-volume.ts';

/** A merge patch of the PersistentVolume; it is conditional on the version that was read. */
type VolumePatch = Readonly<Record<string, unknown>>;

export type ClaimDecision =
  /** Nothing is lost when it goes, or it stays. */
  | { readonly do: 'nothing' }
  /** Its finalizer may go. `first`: a write to its volume that has to come before. */
  | { readonly do: 'release'; readonly first?: VolumePatch }
  /** As `release`, and its RetainedVolume is written in between. */
  | { readonly do: 'keep'; readonly first?: VolumePatch }
  /** It lives, and its volume needs this. */
  | { readonly do: 'mark'; readonly first: VolumePatch };

const policyOf = ({ metadata, spec }: PersistentVolume): string =>
  metadata.annotations?.[keptAnnotation.policy] ?? spec?.persistentVolumeReclaimPolicy ?? 'Retain';

const conditional = ({ metadata }: PersistentVolume, patch: { metadata?: object; spec?: object }): VolumePatch => ({
  ...patch,
  metadata: { uid: metadata.uid, resourceVersion: metadata.resourceVersion, ...patch.metadata },
});

const isKept = ({ metadata }: PersistentVolume): boolean => metadata.labels?.[guestVolume.keptFor] !== undefined;

/** Takes the marks of a kept volume off, and gives it `policy`. */
const unkept = (volume: PersistentVolume, policy: string): VolumePatch =>
  conditional(volume, {
    metadata: {
      labels: { [guestVolume.keptFor]: null },
      annotations: Object.fromEntries(Object.values(keptAnnotation).map((key) => [key, null])),
    },
    spec: { persistentVolumeReclaimPolicy: policy },
  });

export interface ClaimFacts {
  readonly claim: PersistentVolumeClaim;
  readonly consumer: string;
  /** What the claim names, as the API server has it now; undefined: it names none, or that is gone. */
  readonly volume: PersistentVolume | undefined;
  readonly keepMs: number;
  readonly nowMs: number;
}

/** Data goes with a claim only by the consumer's order, and where neither the consumer nor the class of the provider says Retain. */
export function decideClaim({ claim, consumer, volume, keepMs, nowMs }: ClaimFacts): ClaimDecision {
  const { metadata } = claim;
  const { annotations = {} } = metadata;
  const isOurs = volume !== undefined && volume.spec?.claimRef?.uid === metadata.uid;
  const wantsRetain = annotations[storageAnnotation.reclaimPolicy] === 'Retain';
  if (metadata.deletionTimestamp === undefined) {
    // A volume that was kept and has a claim again is no longer kept.
    if (isOurs && isKept(volume)) return { do: 'mark', first: unkept(volume, policyOf(volume)) };
    return { do: 'nothing' };
  }
  if (!metadata.finalizers?.includes(guestVolume.finalizer)) return { do: 'nothing' };
  if (!isOurs) return { do: 'release' };
  const mayGo =
    annotations[storageAnnotation.data] === storageData.delete && !wantsRetain && policyOf(volume) === 'Delete';
  if (mayGo) return isKept(volume) ? { do: 'release', first: unkept(volume, 'Delete') } : { do: 'release' };
  if (isKept(volume) && volume.spec?.persistentVolumeReclaimPolicy === 'Retain') return { do: 'keep' };
  const home = homeClaimOf(annotations);
  const { namespace = '', name, uid = '' } = metadata;
  return {
    do: 'keep',
    // One write: from then on the volume stays, and says itself whose it is.
    first: conditional(volume, {
      metadata: {
        labels: { [guestVolume.keptFor]: consumer },
        annotations: {
          [keptAnnotation.policy]: policyOf(volume),
          [keptAnnotation.since]: timestamp(nowMs),
          [keptAnnotation.expires]: timestamp(nowMs + keepMs),
          [keptAnnotation.remoteClaim]: JSON.stringify({ namespace, name, uid }),
          [keptAnnotation.claim]: home === undefined ? null : JSON.stringify(home),
        },
      },
      spec: { persistentVolumeReclaimPolicy: 'Retain' },
    }),
  };
}

/** The record of a kept volume. */
export function recordOf({ metadata, spec }: PersistentVolume): RetainedVolume {
  const { annotations = {}, labels = {} } = metadata;
  const home = annotations[keptAnnotation.claim];
  const bound = annotations[keptAnnotation.remoteClaim];
  const { namespace = '', name = '', uid = '' } = spec?.claimRef ?? {};
  return {
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'RetainedVolume',
    metadata: { name: metadata.name },
    spec: {
      consumer: labels[guestVolume.keptFor] ?? '',
      ...(home !== undefined && { claim: JSON.parse(home) }),
      remoteClaim: bound === undefined ? { namespace, name, uid } : JSON.parse(bound),
      size: String(spec?.capacity?.storage ?? '0'),
      ...(spec?.storageClassName && { storageClassName: spec.storageClassName }),
      volumeMode: spec?.volumeMode === 'Block' ? 'Block' : 'Filesystem',
      accessModes: [...(spec?.accessModes ?? [])],
      keptSince: annotations[keptAnnotation.since] ?? '',
      expiresAt: annotations[keptAnnotation.expires] ?? '',
    },
  };
}

export interface RecordDecision {
  readonly create?: RetainedVolume;
  /** The record is of no volume any more. */
  readonly remove?: true;
  /** Merge patch of the PersistentVolume. */
  readonly volume?: VolumePatch;
  readonly status?: RetainedVolumeStatus;
  readonly lookAgainMs?: number;
}

export interface RecordFacts {
  readonly record: RetainedVolume | undefined;
  /** As the API server has it now. */
  readonly volume: PersistentVolume | undefined;
  /** A claim of a guest has it: the controller of those takes the marks off. */
  readonly guestHasIt: boolean;
  readonly nowMs: number;
}

export function decideRecord({ record, volume, guestHasIt, nowMs }: RecordFacts): RecordDecision {
  if (volume === undefined) {
    if (record === undefined) return {};
    if (record.spec.discard) return { remove: true };
    const message =
      'the PersistentVolume is gone, and not by `isthmus volume discard`: look for the data where its storage is, then discard this record';
    return { status: { phase: 'Lost', message } };
  }
  if (!isKept(volume)) return record === undefined ? {} : { remove: true };
  if (record === undefined) return { create: recordOf(volume) };
  const { discard, adopt, expiresAt, remoteClaim } = record.spec;
  const { claimRef, persistentVolumeReclaimPolicy } = volume.spec ?? {};
  const isBound = volume.status?.phase === 'Bound';
  if (discard && !isBound) {
    const isOrdered = persistentVolumeReclaimPolicy === 'Delete' && claimRef?.uid !== undefined;
    return {
      // With the uid of a claim that is gone it counts as released, which is what is deleted.
      ...(!isOrdered && {
        volume: conditional(volume, {
          spec: { persistentVolumeReclaimPolicy: 'Delete', claimRef: { ...claimRef, uid: remoteClaim.uid } },
        }),
      }),
      status: { phase: 'Discarding', message: 'its provisioner deletes the data' },
    };
  }
  if (adopt !== undefined) {
    const isReserved = claimRef?.namespace === adopt.namespace && claimRef.name === adopt.claim;
    // Bound to the claim that was wanted: kept no more. It keeps the policy Retain where nothing guards the claim.
    if (isBound && isReserved && claimRef.uid !== remoteClaim.uid)
      return guestHasIt ? {} : { volume: unkept(volume, 'Retain') };
    const isFree = isReserved && claimRef.uid === undefined;
    const reserved = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: adopt.namespace, name: adopt.claim };
    return {
      ...(!isFree &&
        !isBound && {
          volume: conditional(volume, { spec: { claimRef: { ...reserved, uid: null, resourceVersion: null } } }),
        }),
      status: {
        phase: 'Adopting',
        message: `reserved for claim ${adopt.namespace}/${adopt.claim}, which gets it once it exists`,
      },
    };
  }
  const leftMs = Date.parse(expiresAt) - nowMs;
  return leftMs > 0
    ? { status: { phase: 'Kept' }, lookAgainMs: Math.min(leftMs, 86_400_000) }
    : { status: { phase: 'Expired', message: `promised until ${expiresAt}; \`isthmus volume discard\` deletes it` } };
}
