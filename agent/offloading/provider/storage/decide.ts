/** What becomes of the data of a claim of a guest, while it lives and when it ends. Pure. */
import { timestamp } from '#kube/writes/conditions.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { guestVolume, keptAnnotation } from '#shared/domain/guest-volume-keys.ts';
import { type HomeClaim, meantClaimOf, storageAnnotation, storageData } from '#shared/domain/storage-keys.ts';
import type { RetainedVolume, RetainedVolumeStatus } from '#shared/schema/isthmus/retained-volume.ts';

/** A merge patch of the PersistentVolume; it is conditional on the version that was read. */
type VolumePatch = Readonly<Record<string, unknown>>;

export type ClaimDecision =
  /** Nothing is lost when it goes, or it stays. */
  | { readonly do: 'nothing' }
  /** It lives without its finalizer, as after an uninstallation: until it has that, nothing is written that lets its data go. */
  | { readonly do: 'guard' }
  /** Its finalizer may go. `first`: a write to its volume that has to come before. `dataGoes`: with its volume, of which no record may be left. */
  | { readonly do: 'release'; readonly first?: VolumePatch; readonly dataGoes?: true }
  /** As `release`, and its RetainedVolume is written in between, unless there is one. */
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

/** The claim after whose end it is kept; undefined: the marks do not say. */
function keptClaimOf({ metadata }: PersistentVolume): HomeClaim | undefined {
  const text = metadata.annotations?.[keptAnnotation.remoteClaim];
  return text === undefined ? undefined : JSON.parse(text);
}

/** Takes the marks of a kept volume off, and gives it `policy`. */
const unkept = (volume: PersistentVolume, policy: string): VolumePatch =>
  conditional(volume, {
    metadata: {
      labels: { [guestVolume.keptFor]: null },
      annotations: Object.fromEntries(Object.values(keptAnnotation).map((key) => [key, null])),
    },
    spec: { persistentVolumeReclaimPolicy: policy },
  });

/** By kube-controller-manager, on a volume for which it has chosen the claim itself. */
const boundByController = 'pv.kubernetes.io/bound-by-controller';

export interface ClaimFacts {
  readonly claim: PersistentVolumeClaim;
  readonly consumer: string;
  /** What the claim names, as the API server has it now. */
  readonly volume: PersistentVolume | undefined;
  readonly keepMs: number;
  readonly nowMs: number;
}

/** Data goes with a claim only by the consumer's order, and where neither the consumer nor the class of the provider says Retain. */
export function decideClaim({ claim, consumer, volume, keepMs, nowMs }: ClaimFacts): ClaimDecision {
  const { metadata } = claim;
  const { annotations = {} } = metadata;
  const isOurs =
    volume !== undefined &&
    claim.spec?.volumeName === volume.metadata.name &&
    volume.spec?.claimRef?.uid === metadata.uid;
  const isUnpublished = annotations[storageAnnotation.unpublished] !== undefined;
  const wantsRetain = annotations[storageAnnotation.reclaimPolicy] === 'Retain';
  const isGuarded = metadata.finalizers?.includes(guestVolume.finalizer) ?? false;
  if (metadata.deletionTimestamp === undefined) {
    if (!isGuarded) return { do: 'guard' };
    // A volume that was kept and has a claim again is no longer kept. One that nothing of the consumer stands for yet may still be discarded unused.
    if (isOurs && isKept(volume) && !isUnpublished) return { do: 'mark', first: unkept(volume, policyOf(volume)) };
    return { do: 'nothing' };
  }
  if (!isGuarded) return { do: 'nothing' };
  if (!isOurs) return { do: 'release' };
  const earlier = isKept(volume) ? keptClaimOf(volume) : undefined;
  // It was never used: the data is that of the earlier claim, and an order to adopt it holds for the next one.
  if (earlier !== undefined && earlier.uid !== metadata.uid && isUnpublished) {
    const spec = { persistentVolumeReclaimPolicy: 'Retain', claimRef: { uid: earlier.uid } };
    return { do: 'keep', first: conditional(volume, { spec }) };
  }
  const isOrdered = annotations[storageAnnotation.data] === storageData.delete && !wantsRetain;
  const mayGo = isOrdered && policyOf(volume) === 'Delete';
  if (mayGo) return { do: 'release', dataGoes: true, ...(isKept(volume) && { first: unkept(volume, 'Delete') }) };
  // Marks of an earlier end give way to those of this one: what was ordered then is over.
  if (earlier?.uid === metadata.uid && volume.spec?.persistentVolumeReclaimPolicy === 'Retain') return { do: 'keep' };
  const home = meantClaimOf(annotations);
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
          // With it, Kubernetes would clear the whole reservation when it takes one back, and the volume would be any claim's.
          [boundByController]: null,
        },
      },
      spec: { persistentVolumeReclaimPolicy: 'Retain' },
    }),
  };
}

/** The record of a kept volume. */
export function recordOf(volume: PersistentVolume): RetainedVolume {
  const { metadata, spec } = volume;
  const { annotations = {}, labels = {} } = metadata;
  const home = annotations[keptAnnotation.claim];
  const { namespace = '', name = '', uid = '' } = spec?.claimRef ?? {};
  return {
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'RetainedVolume',
    metadata: { name: metadata.name },
    spec: {
      consumer: labels[guestVolume.keptFor] ?? '',
      ...(home !== undefined && { claim: JSON.parse(home) }),
      remoteClaim: keptClaimOf(volume) ?? { namespace, name, uid },
      size: String(spec?.capacity?.storage ?? '0'),
      ...(spec?.storageClassName && { storageClassName: spec.storageClassName }),
      volumeMode: spec?.volumeMode === 'Block' ? 'Block' : 'Filesystem',
      accessModes: [...(spec?.accessModes ?? [])],
      keptSince: annotations[keptAnnotation.since] ?? '',
      expiresAt: annotations[keptAnnotation.expires] ?? '',
    },
  };
}

/** Of the same volume, which has had another claim since. */
export const isOfEarlierEnd = ({ spec }: RetainedVolume, volume: PersistentVolume): boolean =>
  spec.remoteClaim.uid !== recordOf(volume).spec.remoteClaim.uid;

export interface RecordDecision {
  readonly create?: RetainedVolume;
  /** The record is of an earlier end: this one takes its place in one write, and orders that were given to that one are over. */
  readonly replace?: RetainedVolume['spec'];
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
  /** What the claim is that the volume names by UID. Of one of a guest, the controller of those takes the marks off. */
  readonly holder: 'none' | 'guest' | 'other';
  /** Whether the claim that the volume names is, or was, in a namespace of guests, where claims do not go before their volumes are marked. */
  readonly isGuarded: boolean;
  readonly nowMs: number;
}

/** An order to adopt is carried out once: with the end of the claim that got the volume, that volume has other marks, and the record has to follow them. */
export function decideRecord({ record, volume, holder, isGuarded, nowMs }: RecordFacts): RecordDecision {
  if (volume === undefined) {
    if (record === undefined) return {};
    if (record.spec.discard) return { remove: true };
    const message =
      'the PersistentVolume is gone, and not by `isthmus volume discard`: look for the data where its storage is, then discard this record';
    return { status: { phase: 'Lost', message } };
  }
  if (!isKept(volume)) return record === undefined ? {} : { remove: true };
  const kept = recordOf(volume);
  if (record === undefined) return { create: kept };
  const { discard, adopt, remoteClaim } = record.spec;
  if (isOfEarlierEnd(record, volume)) return { replace: kept.spec };
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
  const namesAnother = claimRef?.uid !== undefined && claimRef.uid !== remoteClaim.uid;
  // A guarded claim that was bound is marked before it goes. Without its mark, a UID is only what Kubernetes wrote here before it bound the claim.
  const isLeftOver = namesAnother && holder === 'none' && isGuarded;
  const isTaken = namesAnother && !isLeftOver;
  if (isTaken && holder !== 'guest') {
    const { namespace, name, uid } = claimRef;
    // Nothing tells whether that claim had it, so it counts as the one after whose end the volume is kept.
    if (holder === 'none')
      return {
        volume: conditional(volume, {
          metadata: { annotations: { [keptAnnotation.remoteClaim]: JSON.stringify({ namespace, name, uid }) } },
        }),
      };
    // Bound to a claim that nothing guards: kept no more, and its policy stays Retain.
    if (isBound) return { volume: unkept(volume, 'Retain') };
  }
  const named = { isTaken, isLeftOver };
  const decision = adopt === undefined ? keeping(volume, record.spec, nowMs, named) : adopting(volume, adopt, named);
  return isTaken && !isBound ? { ...decision, lookAgainMs: bindingMs } : decision;
}

/** An administrator's claim can end before its volume says Bound. Where that still said Released then, nothing is written to it, and no event tells of the end. */
const bindingMs = 5_000;

const claimKind = { apiVersion: 'v1', kind: 'PersistentVolumeClaim' };

/** What the UID on the volume means: that a claim is being bound to it, or what is left of one that is gone. */
interface Named {
  readonly isTaken: boolean;
  readonly isLeftOver: boolean;
}

function adopting(
  volume: PersistentVolume,
  { namespace, claim }: NonNullable<RetainedVolume['spec']['adopt']>,
  { isTaken, isLeftOver }: Named,
): RecordDecision {
  const { claimRef } = volume.spec ?? {};
  const isFree = claimRef?.namespace === namespace && claimRef.name === claim && claimRef.uid === undefined;
  const mayReserve = !isFree && !isTaken && (isLeftOver || volume.status?.phase !== 'Bound');
  return {
    ...(mayReserve && {
      volume: conditional(volume, {
        spec: { claimRef: { ...claimKind, namespace, name: claim, uid: null, resourceVersion: null } },
      }),
    }),
    status: { phase: 'Adopting', message: `reserved for claim ${namespace}/${claim}, which gets it once it exists` },
  };
}

/** Without an order. */
function keeping(
  volume: PersistentVolume,
  { expiresAt, remoteClaim }: RetainedVolume['spec'],
  nowMs: number,
  { isLeftOver }: Named,
): RecordDecision {
  const leftMs = Date.parse(expiresAt) - nowMs;
  const { claimRef } = volume.spec ?? {};
  // Without the UID of a claim that is gone, the next claim of that name would get it: an order was taken back.
  const isReserved = isLeftOver || claimRef?.uid === undefined;
  return {
    ...(isReserved && {
      volume: conditional(volume, { spec: { claimRef: { ...claimKind, ...remoteClaim, resourceVersion: null } } }),
    }),
    ...(leftMs > 0
      ? { status: { phase: 'Kept' }, lookAgainMs: Math.min(leftMs, 86_400_000) }
      : {
          status: { phase: 'Expired', message: `promised until ${expiresAt}; \`isthmus volume discard\` deletes it` },
        }),
  };
}
