/** Of a claim that is to begin as what a VolumeSnapshot has: whether its volume can be made where the scheduler sends the claim. Pure. */
import type { PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#shared/domain/snapshot-kinds.ts';
import { localClassParameter, storageAnnotation } from '#shared/domain/storage-keys.ts';
import { snapshotProvider } from '#shared/domain/volumes.ts';
import { amountOf, requestOf, volumeModeOf } from '../model/claims.ts';
import { dataSourceOf } from '../model/data-source.ts';
import { contentOf } from '../model/snapshot-pair.ts';
import { elsewhere, type Found, type Origin, refused, wait } from './source.ts';

type Claim = PersistentVolumeClaim;

/** The VolumeSnapshot beside the real claim that is to be made of it. */
export type RealSnapshot =
  | {
      readonly kind: 'there';
      readonly object: VolumeSnapshot;
      /** Of the real claim that it was taken of, if that is there still. */
      readonly storageClass?: string | undefined;
    }
  /** Of this cluster: it has to be lent first. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'gone'; readonly why: string }
  | { readonly kind: 'unknown'; readonly on: string };

/** As the API servers say. */
export interface SnapshotFacts {
  /** False: this cluster has no kind of that name. */
  readonly isServed: boolean;
  /** The one that is named. */
  readonly snapshot?: VolumeSnapshot | undefined;
  /** What that names as its content. */
  readonly content?: VolumeSnapshotContent | undefined;
  /** Undefined: the snapshot is not where the claim is to be. */
  readonly real?: RealSnapshot | undefined;
}

export function snapshotOriginOf(
  claim: Claim,
  target: Found,
  facts: SnapshotFacts,
  classes: readonly StorageClass[],
): Origin {
  const asked = dataSourceOf(claim);
  if (asked.kind !== 'snapshot') return { kind: 'empty' };
  const says = `${asked.field} is VolumeSnapshot ${asked.name}`;
  const named = `VolumeSnapshot ${claim.metadata.namespace}/${asked.name}, as which it is to begin (${asked.field})`;
  if (!facts.isServed) return wait(`the kinds of VolumeSnapshots to be installed in this cluster: ${says}`);
  const { snapshot } = facts;
  if (snapshot === undefined) return wait(`${named}, to be made`);
  if (snapshot.metadata.deletionTimestamp !== undefined)
    return refused(`${says}, which is being deleted: accepted is one that stays`);
  const content = contentOf(facts);
  if (content?.status?.readyToUse !== true) {
    const why = content?.status?.error?.message ?? snapshot.status?.error?.message;
    return wait(`${named}, to be ready to use${why === undefined ? '' : ` (${why})`}`);
  }
  const mode = content.spec.sourceVolumeMode;
  if (mode !== undefined && mode !== volumeModeOf(claim))
    return refused(`spec.volumeMode is ${volumeModeOf(claim)}: accepted is ${mode}, as of ${named}`);
  const size = snapshot.status?.restoreSize;
  if (amountOf(claim.spec?.resources?.requests) < amountOf(size === undefined ? undefined : { storage: size }))
    return refused(
      `spec.resources.requests.storage is ${requestOf(claim)}: accepted is ${size} or more, which ${named}, has`,
    );
  return (
    elsewhere(claim, target, snapshotProvider(content), `${says}, which is`) ??
    beside(claim, target, { ...facts, content }, classes, says)
  );
}

/** The snapshot is where the claim is to be. */
function beside(
  claim: Claim,
  target: Found,
  { content, real }: SnapshotFacts & { readonly content: VolumeSnapshotContent },
  classes: readonly StorageClass[],
  says: string,
): Origin {
  const find = (className: string | undefined) => classes.find(({ metadata }) => metadata.name === className);
  const { storageClass } = target;
  if (target.kind === 'local') {
    const { provisioner } = find(storageClass) ?? {};
    if (provisioner !== content.spec.driver)
      return refused(
        `${says}, of driver ${content.spec.driver}, and StorageClass ${storageClass} is of provisioner ${provisioner}: name one of that driver in parameters.${localClassParameter} of StorageClass ${claim.spec?.storageClassName}`,
      );
  }
  switch (real?.kind) {
    case undefined:
      return wait(says);
    case 'unknown':
      return wait(real.on);
    case 'gone':
      return refused(`${says}, whose data is not there: ${real.why}`);
    case 'absent':
      return { kind: 'lend', original: content };
    case 'there': {
      const { metadata, status } = real.object;
      const at = `VolumeSnapshot ${metadata.namespace}/${metadata.name}`;
      if (metadata.deletionTimestamp !== undefined) return wait(`${at} to go, and to be made again`);
      if (status?.readyToUse !== true)
        return wait(`${at} to be ready to use${status?.error?.message ? ` (${status.error.message})` : ''}`);
      const isAsked = claim.metadata.annotations?.[storageAnnotation.remoteStorageClass] !== undefined;
      const ofSource = target.kind === 'remote' && !isAsked ? real.storageClass : undefined;
      return { kind: 'copy', of: 'snapshot', name: metadata.name, storageClass: ofSource ?? storageClass };
    }
  }
}
