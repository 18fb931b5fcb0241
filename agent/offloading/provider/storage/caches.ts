/** The caches of claims of guests and of volumes that are kept: by the labels that this provider writes. */
import type { Cache, Caches } from '#kube/model/types.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import type { ConsumerStorage } from './demand.ts';

export const guestClaimCache = (caches: Caches): Cache<PersistentVolumeClaim> =>
  caches.cache(persistentVolumeClaims, { labelSelector: guestVolume.label });

const keptIndexes = { claim: ({ spec }: PersistentVolume): readonly string[] => [spec?.claimRef?.uid ?? ''] };

/** Index: `claim`, by the UID of the claim that is named. */
export const keptVolumeCache = (caches: Caches): Cache<PersistentVolume> =>
  caches.cache(persistentVolumes, { labelSelector: guestVolume.keptFor, indexes: keptIndexes });

/** As these two caches show it; snapshots, whose kinds a cluster may lack, are not in it. */
export const storageOfConsumer = (
  consumer: string,
  claims: Cache<PersistentVolumeClaim>,
  kept: Cache<PersistentVolume>,
): ConsumerStorage => ({
  claims: claims.list().filter(({ metadata }) => metadata.labels?.[guestVolume.label] === consumer),
  kept: kept.list().filter(({ metadata }) => metadata.labels?.[guestVolume.keptFor] === consumer),
});
