/** Dynamic provisioning for tests that have an API server and kube-controller-manager, and no node: volumes are records in memory. */
import type { Cluster } from '#kube/model/types.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { type ObjectRef, refOf } from '#shared/domain/kube-object.ts';
import { codeOf } from '#shared/errors/app-error.ts';

export const recordsDriver = 'records.isthmus.test';
const selectedNode = 'volume.kubernetes.io/selected-node';

export interface ProvisionedClass {
  /** `records` unless told. */
  readonly className?: string;
  /** Whether it is the cluster's default class; true unless told. */
  readonly isDefault?: boolean;
  /** Whether a claim waits for its node, and its volume is of that node alone, as with a class of local disks. */
  readonly waitsForNode?: boolean;
}

export interface VolumeProvisioner {
  /** Names of the volumes whose data exists. */
  readonly data: ReadonlySet<string>;
  /** Of volumes that began as copies: the volume that each was copied from, or the handle of the snapshot. */
  readonly copies: ReadonlyMap<string, string>;
  /** False: no claim gets a volume, as when all disks are full. */
  makes: boolean;
  /** A size to which no claim grows. */
  unable: string | undefined;
  /** The handle behind a VolumeSnapshot, once it has data. Undefined: there are none. */
  handleOf: ((snapshot: ObjectRef) => Promise<string | undefined>) | undefined;
  /** False: no pod has the volumes, so one that grows has its file system grown later, by a kubelet. */
  isMounted: boolean;
  stop(): Promise<void>;
}

const ofNode = (node: string): NonNullable<PersistentVolume['spec']>['nodeAffinity'] => {
  const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }];
  return { required: { nodeSelectorTerms: [{ matchExpressions }] } };
};

function volumeFor(claim: PersistentVolumeClaim, className: string, node: string | undefined): PersistentVolume {
  const { namespace, name, uid } = claim.metadata;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `pvc-${uid}`, annotations: { 'pv.kubernetes.io/provisioned-by': recordsDriver } },
    spec: {
      capacity: { storage: claim.spec?.resources?.requests?.storage ?? '1Gi' },
      accessModes: [...(claim.spec?.accessModes ?? [])],
      volumeMode: claim.spec?.volumeMode ?? 'Filesystem',
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: className,
      csi: { driver: recordsDriver, volumeHandle: `pvc-${uid}` },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
      ...(node !== undefined && { nodeAffinity: ofNode(node) }),
    },
  } as PersistentVolume;
}

/** Makes the class, then a volume for each claim of it, which grows with its claim. Deletes what is released with the policy Delete. */
export async function provisionVolumes(
  { api, caches }: Pick<Cluster, 'api' | 'caches'>,
  { className = 'records', isDefault = true, waitsForNode = false }: ProvisionedClass = {},
): Promise<VolumeProvisioner> {
  const annotations = isDefault ? { 'storageclass.kubernetes.io/is-default-class': 'true' } : {};
  await api.create(storageClasses, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: className, annotations },
    provisioner: recordsDriver,
    reclaimPolicy: 'Delete',
    allowVolumeExpansion: true,
    volumeBindingMode: waitsForNode ? 'WaitForFirstConsumer' : 'Immediate',
  });
  const data = new Set<string>();
  const copies = new Map<string, string>();
  const claims = caches.cache(persistentVolumeClaims);
  const volumes = caches.cache(persistentVolumes);
  const work = new Set<Promise<unknown>>();
  const run = (task: Promise<unknown>, expected: string): void => {
    const done = task
      .catch((error: unknown) => {
        if (codeOf(error) !== expected) throw error;
      })
      .finally(() => work.delete(done));
    work.add(done);
  };

  async function grow(claim: PersistentVolumeClaim, volume: PersistentVolume, storage: string): Promise<void> {
    await api.mergePatch(persistentVolumes, refOf(volume), { spec: { capacity: { storage } } });
    const lastTransitionTime = claim.metadata.creationTimestamp;
    const due = { type: 'FileSystemResizePending', status: 'True', lastTransitionTime };
    const status = provisioner.isMounted
      ? { capacity: { storage }, allocatedResourceStatuses: null, conditions: [] }
      : { allocatedResourceStatuses: { storage: 'NodeResizePending' }, conditions: [due] };
    const said = { ...status, allocatedResources: { storage } };
    await api.mergePatch(persistentVolumeClaims, refOf(claim), { status: said }, { subresource: 'status' });
  }

  /** Waits, as the real one, for a snapshot that can be used. */
  async function restore({ metadata, spec }: PersistentVolumeClaim, made: PersistentVolume): Promise<void> {
    const ref = { namespace: metadata.namespace ?? '', name: spec?.dataSource?.name ?? '' };
    for (;;) {
      const handle = await provisioner.handleOf?.(ref);
      const now = await api.get(persistentVolumeClaims, refOf({ metadata } as PersistentVolumeClaim));
      if (now === undefined || now.metadata.uid !== metadata.uid || data.has(made.metadata.name)) return;
      if (handle !== undefined) {
        copies.set(made.metadata.name, handle);
        data.add(made.metadata.name);
        await api.create(persistentVolumes, made);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  const provisioner: VolumeProvisioner = {
    data,
    copies,
    makes: true,
    unable: undefined,
    handleOf: undefined,
    isMounted: true,
    async stop() {
      for (const unsubscribe of subscriptions) unsubscribe();
      await Promise.all(work);
    },
  };
  const subscriptions = [
    claims.subscribe(({ after: claim }) => {
      const { storageClassName, volumeName } = claim?.spec ?? {};
      if (claim === undefined || storageClassName !== className || claim.metadata.deletionTimestamp) return;
      const volume = volumeName ? volumes.get({ name: volumeName }) : undefined;
      const asked = claim.spec?.resources?.requests?.storage;
      if (
        asked !== provisioner.unable &&
        volume &&
        asked !== undefined &&
        claim.status?.phase === 'Bound' &&
        claim.status.capacity?.storage !== asked
      )
        run(grow(claim, volume, asked), 'kube_not_found');
      const node = claim.metadata.annotations?.[selectedNode];
      if (volumeName || !provisioner.makes || (waitsForNode && node === undefined)) return;
      const made = volumeFor(claim, className, waitsForNode ? node : undefined);
      if (data.has(made.metadata.name)) return;
      const { namespace = '' } = claim.metadata;
      if (claim.spec?.dataSource?.kind === 'VolumeSnapshot') {
        run(restore(claim, made), 'kube_already_exists');
        return;
      }
      const from = claim.spec?.dataSource?.name;
      const source = from === undefined ? undefined : claims.get({ namespace, name: from })?.spec?.volumeName;
      // As a CSI driver has it: no volume begins with anything else than it is to.
      if (from !== undefined && source === undefined) return;
      if (source !== undefined) copies.set(made.metadata.name, source);
      data.add(made.metadata.name);
      run(api.create(persistentVolumes, made), 'kube_already_exists');
    }),
    volumes.subscribe(({ after: volume }) => {
      if (volume?.status?.phase !== 'Released' || volume.spec?.persistentVolumeReclaimPolicy !== 'Delete') return;
      if (volume.spec.storageClassName !== className || volume.spec.csi?.driver !== recordsDriver) return;
      data.delete(volume.metadata.name);
      copies.delete(volume.metadata.name);
      run(api.delete(persistentVolumes, { name: volume.metadata.name }), 'kube_not_found');
    }),
  ];
  return provisioner;
}
