/** What a guest's claim may begin with: nothing, or a copy of a living claim of the same guest in the same namespace. Pure. */
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import { volumeModeOf } from '#agent/storage/model/claims.ts';
import { type DataSource, dataSourceOf } from '#agent/storage/model/data-source.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { bytesOf, classOf } from '../storage/demand.ts';

/** As the API server has them now. */
export interface GuestSource {
  /** The claim of the namespace that is named. */
  readonly claim?: PersistentVolumeClaim | undefined;
  /** What that claim names in `spec.volumeName`. */
  readonly volume?: PersistentVolume | undefined;
}

type Named = Exclude<DataSource, { kind: 'none' }>;

const refuse = (field: string, value: unknown, why: string): Verdict =>
  deny('sandbox_refused', `${field} is ${JSON.stringify(value)}: ${why}`);

/** Undefined: it begins empty, and nothing has to be read for it. */
export function namedSource(claim: PersistentVolumeClaim): Named | undefined {
  const source = dataSourceOf(claim);
  return source.kind === 'none' ? undefined : source;
}

/** `classes`: of this cluster. */
export function validateSource(
  claim: PersistentVolumeClaim,
  named: Named,
  { claim: source, volume }: GuestSource,
  consumer: string,
  classes: readonly StorageClass[],
): Verdict {
  const { namespace } = claim.metadata;
  if (named.kind === 'other')
    return refuse(named.field, named.says, `accepted is a PersistentVolumeClaim of namespace ${namespace}, or none`);
  const { field, name } = named;
  if (source === undefined || source.metadata.labels?.[guestVolume.label] !== consumer)
    return refuse(`${field}.name`, name, `${consumer} has no such claim in namespace ${namespace}`);
  if (source.metadata.deletionTimestamp !== undefined)
    return refuse(
      `${field}.name`,
      name,
      'that claim is being deleted, and its data may be kept: accepted is one that stays',
    );
  // What is kept is handed back by order of this cluster only, and is not the guest's until its claim is used again.
  const isBound = source.status?.phase === 'Bound' && volume?.spec?.claimRef?.uid === source.metadata.uid;
  if (volume === undefined || !isBound || volume.metadata.labels?.[guestVolume.keptFor] !== undefined)
    return refuse(`${field}.name`, name, 'that claim has no volume of its own yet: accepted is one that is Bound');
  if (volumeModeOf(source) !== volumeModeOf(claim))
    return refuse(
      'spec.volumeMode',
      volumeModeOf(claim),
      `accepted is ${volumeModeOf(source)}, as of claim ${name} (${field})`,
    );
  // By its request it counts, and storage may give it as much as the source has.
  const [asked, has] = [claim.spec?.resources?.requests?.storage, volume.spec?.capacity?.storage];
  if (bytesOf(asked) < bytesOf(has))
    return refuse(
      'spec.resources.requests.storage',
      asked,
      `accepted is ${has} or more, which claim ${name} (${field}) has`,
    );
  const className = classOf(claim);
  const provisioner = classes.find(({ metadata }) => metadata.name === className)?.provisioner;
  const driver = volume.spec?.csi?.driver;
  // A provisioner that cannot copy makes an empty volume and says nothing; the one of a CSI driver says so.
  if (driver === undefined || driver !== provisioner)
    return refuse(
      `${field}.name`,
      name,
      `its volume ${driver === undefined ? 'no CSI driver has made' : `is of CSI driver ${driver}`}, and StorageClass ${className} is of provisioner ${provisioner}, which cannot copy it`,
    );
  return allow;
}
