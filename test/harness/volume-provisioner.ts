/** Dynamic provisioning for tests that have an API server and kube-controller-manager, and no node: volumes are records in memory. */
import type { Cluster } from '#kube/model/types.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { codeOf } from '#shared/errors/app-error.ts';

const driver = 'records.isthmus.test';

export interface VolumeProvisioner {
  /** Names of the volumes whose data exists. */
  readonly data: ReadonlySet<string>;
  stop(): Promise<void>;
}

const volumeFor = (claim: PersistentVolumeClaim, className: string): PersistentVolume => {
  const { namespace, name, uid } = claim.metadata;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `pvc-${uid}`, annotations: { 'pv.kubernetes.io/provisioned-by': driver } },
    spec: {
      capacity: { storage: claim.spec?.resources?.requests?.storage ?? '1Gi' },
      accessModes: [...(claim.spec?.accessModes ?? [])],
      volumeMode: claim.spec?.volumeMode ?? 'Filesystem',
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: className,
      csi: { driver, volumeHandle: `pvc-${uid}` },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
    },
  } as PersistentVolume;
};

/** Makes the class, Immediate and the default one, and then a volume for each claim of it. Deletes what is released with the policy Delete. */
export async function provisionVolumes({ api, caches }: Cluster, className = 'records'): Promise<VolumeProvisioner> {
  await api.create(storageClasses, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: className, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: driver,
    reclaimPolicy: 'Delete',
    allowVolumeExpansion: true,
    volumeBindingMode: 'Immediate',
  });
  const data = new Set<string>();
  const claims = caches.cache(persistentVolumeClaims);
  const volumes = caches.cache(persistentVolumes);
  const unless =
    (...expected: string[]) =>
    (error: unknown) => {
      if (!expected.includes(codeOf(error) ?? '')) throw error;
    };
  const work = new Set<Promise<unknown>>();
  const run = (task: Promise<unknown>): void => {
    const done = task.finally(() => work.delete(done));
    work.add(done);
  };
  const subscriptions = [
    claims.subscribe(({ after: claim }) => {
      const { storageClassName, volumeName } = claim?.spec ?? {};
      if (claim === undefined || volumeName || storageClassName !== className || claim.metadata.deletionTimestamp)
        return;
      const volume = volumeFor(claim, className);
      if (data.has(volume.metadata.name)) return;
      data.add(volume.metadata.name);
      run(api.create(persistentVolumes, volume).catch(unless('kube_already_exists')));
    }),
    volumes.subscribe(({ after: volume }) => {
      if (volume?.status?.phase !== 'Released' || volume.spec?.persistentVolumeReclaimPolicy !== 'Delete') return;
      if (volume.spec.csi?.driver !== driver) return;
      data.delete(volume.metadata.name);
      run(api.delete(persistentVolumes, { name: volume.metadata.name }).catch(unless('kube_not_found')));
    }),
  ];
  return {
    data,
    async stop() {
      for (const unsubscribe of subscriptions) unsubscribe();
      await Promise.all(work);
    },
  };
}
