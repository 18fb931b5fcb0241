/** A claim of guest `rome` that is Bound, and its volume, as the API server of a provider has them: what copies and snapshots of guests are made of. */
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';

export const guestClaimOf = (metadata: object = {}, more: object = {}): PersistentVolumeClaim =>
  ({
    metadata: { namespace: 'shop-rome', name: 'db', uid: 'u-db', labels: { 'isthmus.dev/guest': 'rome' }, ...metadata },
    spec: { storageClassName: 'fast', volumeName: 'pv-db' },
    status: { phase: 'Bound' },
    ...more,
  }) as unknown as PersistentVolumeClaim;

export const guestVolumeOf = (spec: object = {}, labels: object = {}): PersistentVolume =>
  ({
    metadata: { name: 'pv-db', labels },
    spec: {
      capacity: { storage: '2Gi' },
      claimRef: { uid: 'u-db' },
      csi: { driver: 'disk.example.com', volumeHandle: 'h' },
      ...spec,
    },
  }) as unknown as PersistentVolume;
