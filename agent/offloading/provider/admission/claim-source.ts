/** What a guest's claim may begin with: nothing, or a copy of a living claim or of a snapshot of the same guest in the same namespace. Pure. */
import { allow, type Verdict } from '#agent/admission/review.ts';
import { volumeModeOf } from '#agent/storage/model/claims.ts';
import { type DataSource, dataSourceOf } from '#agent/storage/model/data-source.ts';
import { contentOf } from '#agent/storage/model/snapshot-pair.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#shared/domain/snapshot-kinds.ts';
import { bytesOf, classOf, snapshotSize } from '../storage/demand.ts';
import { refuseField } from './refuse-field.ts';

/** As the API server has them now. */
export interface GuestSource {
  /** The claim of the namespace that is named. */
  readonly claim?: PersistentVolumeClaim | undefined;
  /** What that claim names in `spec.volumeName`. */
  readonly volume?: PersistentVolume | undefined;
  /** The VolumeSnapshot of the namespace that is named. */
  readonly snapshot?: VolumeSnapshot | undefined;
  /** What that names as its content. */
  readonly content?: VolumeSnapshotContent | undefined;
}

export type Named = Exclude<DataSource, { kind: 'none' }>;

/** Undefined: it begins empty, and nothing has to be read for it. */
export function namedSource(claim: PersistentVolumeClaim): Named | undefined {
  const source = dataSourceOf(claim);
  return source.kind === 'none' ? undefined : source;
}

/** Why this is no claim of the guest with data of its own; undefined: it is one. `absent`: the guest has none of that name. */
export function whyNotLiving(
  claim: PersistentVolumeClaim | undefined,
  volume: PersistentVolume | undefined,
  consumer: string,
): string | undefined {
  if (claim === undefined || claim.metadata.labels?.[guestVolume.label] !== consumer) return 'absent';
  if (claim.metadata.deletionTimestamp !== undefined)
    return 'that claim is being deleted, and its data may be kept: accepted is one that stays';
  // What is kept is handed back by order of this cluster only, and is not the guest's until its claim is used again.
  const isBound = claim.status?.phase === 'Bound' && volume?.spec?.claimRef?.uid === claim.metadata.uid;
  if (volume === undefined || !isBound || volume.metadata.labels?.[guestVolume.keptFor] !== undefined)
    return 'that claim has no volume of its own yet: accepted is one that is Bound';
  return undefined;
}

/** `classes`: of this cluster. */
export function validateSource(
  claim: PersistentVolumeClaim,
  named: Named,
  found: GuestSource,
  consumer: string,
  classes: readonly StorageClass[],
): Verdict {
  const { namespace } = claim.metadata;
  if (named.kind === 'other')
    return refuseField(
      named.field,
      named.says,
      `accepted is a PersistentVolumeClaim or a VolumeSnapshot of namespace ${namespace}, or none`,
    );
  const origin = named.kind === 'claim' ? ofClaim(found, consumer) : ofSnapshot(found, consumer);
  const { field, name } = named;
  const [kind, called] =
    named.kind === 'claim'
      ? (['claim', `claim ${name}`] as const)
      : (['VolumeSnapshot', `VolumeSnapshot ${name}`] as const);
  if (typeof origin === 'string')
    return refuseField(
      `${field}.name`,
      name,
      origin === 'absent' ? `${consumer} has no such ${kind} in namespace ${namespace}` : origin,
    );
  const { volumeMode, size, driver } = origin;
  if (volumeMode !== undefined && volumeMode !== volumeModeOf(claim))
    return refuseField('spec.volumeMode', volumeModeOf(claim), `accepted is ${volumeMode}, as of ${called} (${field})`);
  // By its request it counts, and storage may give it as much as the source has.
  const asked = claim.spec?.resources?.requests?.storage;
  if (bytesOf(asked) < bytesOf(size))
    return refuseField(
      'spec.resources.requests.storage',
      asked,
      `accepted is ${size} or more, which ${called} (${field}) has`,
    );
  const className = classOf(claim);
  const provisioner = classes.find(({ metadata }) => metadata.name === className)?.provisioner;
  // A provisioner that cannot copy makes an empty volume and says nothing; the one of a CSI driver says so.
  if (driver === undefined || driver !== provisioner)
    return refuseField(
      `${field}.name`,
      name,
      `its ${named.kind === 'claim' ? 'volume' : 'data'} ${driver === undefined ? 'no CSI driver has made' : `is of CSI driver ${driver}`}, and StorageClass ${className} is of provisioner ${provisioner}, which cannot copy it`,
    );
  return allow;
}

/** What a volume that begins so has to fit. A text: why it may not, as of `whyNotLiving`. */
type Beginning =
  | {
      readonly volumeMode?: string | undefined;
      readonly size?: string | undefined;
      readonly driver?: string | undefined;
    }
  | string;

function ofClaim({ claim, volume }: GuestSource, consumer: string): Beginning {
  const dead = whyNotLiving(claim, volume, consumer);
  if (dead !== undefined || claim === undefined) return dead ?? 'absent';
  return { volumeMode: volumeModeOf(claim), size: volume?.spec?.capacity?.storage, driver: volume?.spec?.csi?.driver };
}

function ofSnapshot({ snapshot, content }: GuestSource, consumer: string): Beginning {
  if (snapshot === undefined || snapshot.metadata.labels?.[guestVolume.label] !== consumer) return 'absent';
  // Only what the webhook has let the guest take has one: a snapshot of a claim of its own.
  if (snapshot.spec?.source?.persistentVolumeClaimName === undefined) return 'absent';
  if (snapshot.metadata.deletionTimestamp !== undefined)
    return 'that VolumeSnapshot is being deleted, and its data may be kept: accepted is one that stays';
  const bound = contentOf({ snapshot, content });
  if (bound?.status?.readyToUse !== true || snapshot.status?.readyToUse !== true)
    return 'that VolumeSnapshot is not ready to use yet';
  const { sourceVolumeMode: volumeMode, driver } = bound.spec;
  // Drivers need not report how much a volume of it takes; 0 says that they do not.
  const { restoreSize } = snapshot.status;
  return { volumeMode, size: bytesOf(restoreSize) > 0n ? restoreSize : snapshotSize(snapshot), driver };
}
