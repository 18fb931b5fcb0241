/** A volume, its claim here and its real claim, as they are seen before a decision about them. */
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { decide, type Observed, type RealClaim } from '../decide.ts';

const held = 'external-provisioner.volume.kubernetes.io/finalizer';
export const volume = ({
  phase = 'Bound',
  policy = 'Delete',
  going = false,
  isHeld = true,
  remote = true,
  storage = '1Gi',
  annotations = { 'isthmus.dev/real-volume': 'real', 'isthmus.dev/real-storage-class': 'fast' },
}: Record<string, unknown> = {}): PersistentVolume =>
  ({
    metadata: {
      name: 'pvc-u',
      annotations,
      ...(going ? { deletionTimestamp: 'now' } : {}),
      finalizers: isHeld ? [held] : [],
    },
    spec: {
      persistentVolumeReclaimPolicy: policy,
      capacity: { storage },
      ...(remote
        ? { csi: { driver: 'storage.isthmus.dev', volumeHandle: 'prov/r/data' } }
        : { hostPath: { path: '/d' } }),
    },
    status: { phase },
  }) as unknown as PersistentVolume;
export const home = (request = '1Gi', capacity = '1Gi', conditions: object[] = []): PersistentVolumeClaim =>
  ({
    metadata: { namespace: 'shop', name: 'data', uid: 'u' },
    spec: { resources: { requests: { storage: request } } },
    status: { capacity: { storage: capacity }, conditions },
  }) as unknown as PersistentVolumeClaim;
export const claim = ({
  annotations = {},
  request = '1Gi',
  capacity = '1Gi',
  phase = 'Bound',
  ...metadata
}: Record<string, unknown> = {}): RealClaim => ({
  kind: 'there',
  object: {
    metadata: {
      namespace: 'r',
      name: 'data',
      annotations: { 'isthmus.dev/reclaim-policy': 'Delete', ...(annotations as object) },
      ...metadata,
    },
    spec: { storageClassName: 'fast', volumeName: 'real', resources: { requests: { storage: request } } },
    status: { phase, capacity: { storage: capacity } },
  } as unknown as PersistentVolumeClaim,
});
export const look = (more: Partial<Observed> = {}) =>
  decide({ volume: volume(), home: home(), real: claim(), reachable: true, isLiqoctlMoving: false, nowMs: 0, ...more });
export const steps = (more: Partial<Observed>): string[] => look(more).map((action) => action.do);
