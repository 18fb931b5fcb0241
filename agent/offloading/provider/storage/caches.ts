/** The caches of claims of guests and of volumes that are kept: by the labels that this provider writes. */
import type { Cache, Caches } from '#kube/model/types.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';

export const guestClaimCache = (caches: Caches): Cache<PersistentVolumeClaim> =>
  caches.cache(persistentVolumeClaims, { labelSelector: guestVolume.label });

export const keptVolumeCache = (caches: Caches): Cache<PersistentVolume> =>
  caches.cache(persistentVolumes, { labelSelector: guestVolume.keptFor });
