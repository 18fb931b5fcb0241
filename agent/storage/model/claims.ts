/** What claims and volumes say, and the selections by which they are watched. Pure, but for the caches. */
import type { Cache, Caches } from '#kube/model/types.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  type StorageClass,
} from '#shared/domain/core-kinds.ts';
import { tryParseQuantity } from '#shared/domain/quantity.ts';
import { homeClaimOf, isVirtualProvisioner, storageAnnotation, storageNamespace } from '#shared/domain/storage-keys.ts';
import { isOurVolume } from '#shared/domain/volumes.ts';
import { sourceKeyOf } from './data-source.ts';

/** By the scheduler, when the class waits for a first consumer: the node for whose pods the volume is to be made. */
export const selectedNode = 'volume.kubernetes.io/selected-node';
/** By kube-controller-manager: which provisioner a claim waits for. */
const provisionerKeys = ['volume.kubernetes.io/storage-provisioner', 'volume.beta.kubernetes.io/storage-provisioner'];

type Annotated = Pick<PersistentVolumeClaim, 'metadata'>;

export const nodeOf = ({ metadata }: Annotated): string | undefined => metadata.annotations?.[selectedNode];

/** Undefined: kube-controller-manager has not said so yet, which it does after the scheduler has selected a node. */
export const provisionerOf = ({ metadata }: Annotated): string | undefined =>
  provisionerKeys.map((key) => metadata.annotations?.[key]).find((value) => value !== undefined);
export const awaitsUs = (claim: Annotated): boolean => isVirtualProvisioner(provisionerOf(claim));

export const isUnpublished = ({ metadata }: Annotated): boolean =>
  metadata.annotations?.[storageAnnotation.unpublished] !== undefined;

export const isDefaultClass = ({ metadata }: StorageClass): boolean =>
  metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true';

/** The volume that is made for a claim; the UID keeps it apart from that of an earlier claim of the same name. */
export const volumeNameOf = (claimUid: string): string => `pvc-${claimUid}`;
export const claimUidOf = (volumeName: string): string => volumeName.replace(/^pvc-/, '');

/** In bytes, times 10^9; 0 where nothing is said. */
export const amountOf = (resources: Readonly<Record<string, string>> | undefined): bigint =>
  tryParseQuantity(resources?.storage ?? '0') ?? 0n;

export const requestOf = ({ spec }: Pick<PersistentVolumeClaim, 'spec'>): string =>
  spec?.resources?.requests?.storage ?? '0';

export const volumeModeOf = ({ spec }: Pick<PersistentVolumeClaim, 'spec'>): string => spec?.volumeMode ?? 'Filesystem';

/** UIDs that the real claim behind a volume may name: while the volume goes from one claim to another, that of the earlier one, too. */
export const realClaimUids = ({ metadata, spec }: PersistentVolume): readonly string[] =>
  [spec?.claimRef?.uid, metadata.annotations?.[storageAnnotation.realClaimUid]].filter((uid) => uid !== undefined);

const kept = (annotations: Readonly<Record<string, string>> = {}): Record<string, string> => {
  const { 'kubectl.kubernetes.io/last-applied-configuration': _, ...rest } = annotations;
  return rest;
};

function leanClaim({ apiVersion, kind, metadata, spec, status }: PersistentVolumeClaim): PersistentVolumeClaim {
  const { annotations, ownerReferences: _, ...rest } = metadata;
  return {
    apiVersion,
    kind,
    metadata: { ...rest, ...(annotations && { annotations: kept(annotations) }) },
    ...(spec && { spec }),
    ...(status && { status }),
  };
}

const byNode = (claim: PersistentVolumeClaim): readonly string[] => [nodeOf(claim) ?? ''];
/** Of real claims: the claim, `namespace/name`, that they are for. */
const byHome = (claim: PersistentVolumeClaim): readonly string[] => {
  const home = homeClaimOf(claim.metadata.annotations);
  return home ? [`${home.namespace}/${home.name}`] : [];
};
/** Of claims without a volume: the claim, `namespace/name`, that they are to be copies of. */
const bySource = (claim: PersistentVolumeClaim): readonly string[] => {
  const source = claim.spec?.volumeName ? undefined : sourceKeyOf(claim);
  return source === undefined ? [] : [source];
};
const claimIndexes = { node: byNode, home: byHome, source: bySource };

/** Every claim of this cluster, real ones for our volumes included. Indexes: `node`, `home`, `source`. */
export const allClaims = (caches: Caches): Cache<PersistentVolumeClaim> =>
  caches.cache(persistentVolumeClaims, { transform: leanClaim, indexes: claimIndexes });

/** Volumes that we made and those behind them; of others only that they are there. */
function leanVolume(volume: PersistentVolume): PersistentVolume {
  if (isOurVolume(volume) || volume.spec?.claimRef?.namespace === storageNamespace) return volume;
  const { apiVersion, kind, metadata } = volume;
  const { name, uid, resourceVersion } = metadata;
  return {
    apiVersion,
    kind,
    metadata: { name, ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) },
  };
}

const byHandle = (volume: PersistentVolume): readonly string[] => [volume.spec?.csi?.volumeHandle ?? ''];
const volumeIndexes = { handle: byHandle };

/** Index: `handle`, of volumes at providers. */
export const allVolumes = (caches: Caches): Cache<PersistentVolume> =>
  caches.cache(persistentVolumes, { transform: leanVolume, indexes: volumeIndexes });
