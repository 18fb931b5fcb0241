/**
 * Of a claim that is to begin as a copy of another one: whether the copy can be made where the scheduler sends the claim. It is made by the storage
 * that has the source, so both real claims stand in one namespace of one cluster. Pure.
 */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import { snapshotGroup, type VolumeSnapshotContent } from '#shared/domain/snapshot-kinds.ts';
import { localClassParameter, storageAnnotation, virtualProvisioners } from '#shared/domain/storage-keys.ts';
import { isOurVolume, isVirtual, remoteOf } from '#shared/domain/volumes.ts';
import { amountOf, nodeOf, requestOf, volumeModeOf } from '../model/claims.ts';
import { dataSourceOf } from '../model/data-source.ts';
import type { Target } from './target.ts';

type Claim = PersistentVolumeClaim;
export type Found = Extract<Target, { kind: 'local' | 'remote' }>;

/** The real claim of the source, in the namespace in which that of the copy is to be made. */
export type RealSource =
  | { readonly kind: 'there'; readonly object: Claim; readonly volume?: PersistentVolume | undefined }
  | { readonly kind: 'gone'; readonly why: string }
  | { readonly kind: 'unknown'; readonly on: string };

/** As the API servers say. */
export interface SourceFacts {
  /** The claim that is named. */
  readonly claim?: Claim | undefined;
  /** What that claim names in `spec.volumeName`. */
  readonly volume?: PersistentVolume | undefined;
  /** Undefined: the volume is not where the copy is to be, or not there at all. */
  readonly real?: RealSource | undefined;
}

export interface Copy {
  readonly kind: 'copy';
  /** Absent: a claim. */
  readonly of?: 'snapshot';
  /** Name of the real claim that is copied, or of the VolumeSnapshot beside the real claim that is to be made. */
  readonly name: string;
  readonly storageClass: string;
}

export type Origin =
  | { readonly kind: 'empty' }
  | { readonly kind: 'wait'; readonly on: string }
  | { readonly kind: 'refused'; readonly message: string }
  /** The scheduler must choose again. */
  | { readonly kind: 'elsewhere'; readonly message: string }
  /** A snapshot of this cluster has to be lent to the real claim first. `original`: its content. */
  | { readonly kind: 'lend'; readonly original: VolumeSnapshotContent }
  | Copy;

/** Event on a claim whose node is not where its data source is. */
export const dataSourceElsewhere = 'DataSourceElsewhere';

export const refused = (message: string): Origin => ({ kind: 'refused', message });
export const wait = (on: string): Origin => ({ kind: 'wait', on });

const bytesOf = ({ status }: Claim): string => status?.capacity?.storage ?? '0';

/** Undefined: not bound, or to a volume that is not its own. */
const volumeOf = ({ claim, volume }: SourceFacts): PersistentVolume | undefined =>
  claim?.status?.phase === 'Bound' && volume?.spec?.claimRef?.uid === claim.metadata.uid ? volume : undefined;

export function originOf(claim: Claim, target: Found, facts: SourceFacts, classes: readonly StorageClass[]): Origin {
  const asked = dataSourceOf(claim);
  if (asked.kind !== 'claim') return { kind: 'empty' };
  const says = `${asked.field} is PersistentVolumeClaim ${asked.name}`;
  const named = `claim ${claim.metadata.namespace}/${asked.name}, of which it is to be a copy (${asked.field})`;
  const source = facts.claim;
  if (source === undefined) return wait(`${named}, to be made`);
  if (source.metadata.deletionTimestamp !== undefined)
    return refused(`${says}, which is being deleted: accepted is a claim that stays`);
  if (volumeModeOf(source) !== volumeModeOf(claim))
    return refused(`spec.volumeMode is ${volumeModeOf(claim)}: accepted is ${volumeModeOf(source)}, as of ${named}`);
  const volume = volumeOf(facts);
  if (volume ? !isOurVolume(volume) : !mayBeOurs(source, classes))
    return refused(
      `${says}, of StorageClass ${source.spec?.storageClassName ?? '""'}: accepted is a claim of a class with provisioner ${virtualProvisioners.join(' or ')}, whose volumes Isthmus makes`,
    );
  if (volume === undefined) return wait(`${named}, to be Bound: its first pod decides where its volume is`);
  if (source.metadata.annotations?.[storageAnnotation.moving] !== undefined)
    return wait(`${named}, to be where it is moved to (isthmus move volume ${asked.name} status)`);
  const tooSmall = (has: Claim): Origin | undefined =>
    amountOf(claim.spec?.resources?.requests) < amountOf(has.status?.capacity)
      ? refused(
          `spec.resources.requests.storage is ${requestOf(claim)}: accepted is ${bytesOf(has)} or more, which ${named}, has`,
        )
      : undefined;
  return (
    tooSmall(source) ??
    elsewhere(claim, target, remoteOf(volume)?.provider, `${says}, whose volume is`) ??
    beside(claim, target, facts, classes, { says, named, tooSmall })
  );
}

const mayBeOurs = ({ spec }: Claim, classes: readonly StorageClass[]): boolean =>
  spec?.storageClassName === undefined ||
  isVirtual(classes.find(({ metadata }) => metadata.name === spec.storageClassName));

/** `at`: the provider that has the source; undefined: this cluster. */
export function elsewhere(claim: Claim, target: Found, at: string | undefined, says: string): Origin | undefined {
  const to = target.kind === 'remote' ? target.provider : undefined;
  if (at === to) return undefined;
  const place = (provider: string | undefined): string =>
    provider === undefined ? 'in this cluster' : `at cluster ${provider}`;
  return {
    kind: 'elsewhere',
    message: `${says} ${place(at)}, and node ${nodeOf(claim)}, which the scheduler selected, is ${place(to)}: a copy is made where its source is. Pods that are made from now on are kept to nodes of that cluster, if the offloading of their namespace leaves them any; delete one that is not`,
  };
}

interface Words {
  readonly says: string;
  readonly named: string;
  readonly tooSmall: (has: Claim) => Origin | undefined;
}

/** The source is where the copy is to be. */
function beside(
  claim: Claim,
  target: Found,
  { real }: SourceFacts,
  classes: readonly StorageClass[],
  { says, named, tooSmall }: Words,
): Origin {
  if (real === undefined || real.kind === 'unknown') return wait(real?.on ?? named);
  if (real.kind === 'gone') return refused(`${says}, whose data is not there: ${real.why}`);
  const { object } = real;
  const at = `${object.metadata.namespace}/${object.metadata.name}`;
  if (object.metadata.deletionTimestamp !== undefined)
    return refused(`${says}, whose real claim ${at} is being deleted: accepted is a claim that stays`);
  if (object.status?.phase !== 'Bound')
    return wait(
      `${named}, to get its volume: most classes make it when the first pod that uses it starts, and its real claim ${at} is ${object.status?.phase ?? 'Pending'}`,
    );
  const small = tooSmall(object);
  if (small) return small;
  const { name } = object.metadata;
  const ofSource = object.spec?.storageClassName;
  if (target.kind === 'remote') {
    const isAsked = claim.metadata.annotations?.[storageAnnotation.remoteStorageClass] !== undefined;
    return { kind: 'copy', name, storageClass: isAsked ? target.storageClass : (ofSource ?? target.storageClass) };
  }
  const find = (className: string | undefined) => classes.find(({ metadata }) => metadata.name === className);
  const isAsked = find(claim.spec?.storageClassName)?.parameters?.[localClassParameter] !== undefined;
  const storageClass = find(isAsked ? target.storageClass : ofSource) ?? find(target.storageClass);
  const driver = real.volume?.spec?.csi?.driver;
  // A provisioner that cannot copy makes an empty volume and says nothing; the one of a CSI driver says so.
  if (driver === undefined || storageClass?.provisioner !== driver)
    return refused(
      `${says}, whose volume ${driver === undefined ? 'no CSI driver has made' : `is of driver ${driver}`}, and StorageClass ${storageClass?.metadata.name ?? target.storageClass} is of provisioner ${storageClass?.provisioner}: accepted is a source whose CSI driver also makes the copy`,
    );
  return { kind: 'copy', name, storageClass: storageClass.metadata.name };
}

/** The real claim, beginning as that copy, if it is to be one. */
export const withOrigin = (real: Claim, copy: Copy | undefined): Claim =>
  copy === undefined
    ? real
    : {
        ...real,
        spec: {
          ...real.spec,
          storageClassName: copy.storageClass,
          dataSource: {
            ...(copy.of === 'snapshot'
              ? { apiGroup: snapshotGroup, kind: 'VolumeSnapshot' }
              : { kind: 'PersistentVolumeClaim' }),
            name: copy.name,
          },
        },
      };
