/** Claims, volumes and their data when Isthmus is taken out of a cluster: no data goes, and nothing holds them any more. */
import { describe, expect, test } from 'vitest';
import type { KubeClient } from '#cli/cluster/open.ts';
import {
  csiDrivers,
  csiStorageCapacities,
  namespaces,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { guestVolume, keptAnnotation } from '#shared/domain/guest-volume-keys.ts';
import type { KubeObject, ObjectMeta, ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { nameOf } from './own-objects.ts';
import { clusterOf, remove } from './testing/cluster-in-memory.ts';

describe('taking Isthmus out', () => {
  test('keeps the namespace of real claims while there are claims in it, and the classes of others', async () => {
    const labels = { 'app.kubernetes.io/part-of': 'isthmus' };
    const classOf = (name: string, provisioner: string) => [storageClasses, { name, labels }, { provisioner }] as const;
    const capacityOf = (name: string, driver: string) =>
      [
        csiStorageCapacities,
        { namespace: 'liqo-storage', name, labels: { 'csi.storage.k8s.io/drivername': driver } },
      ] as const;
    const storage = [
      [namespaces, { name: 'liqo-storage', labels }],
      classOf('liqo', 'liqo.io/storage'),
      classOf('isthmus', 'storage.isthmus.dev'),
      classOf('disk', 'disk.example.com'),
      [csiDrivers, { name: 'storage.isthmus.dev', labels }],
      [csiDrivers, { name: 'disk.example.com' }],
      capacityOf('isthmus-1', 'storage.isthmus.dev'),
      capacityOf('disk-1', 'disk.example.com'),
    ] as const;
    const claim = [persistentVolumeClaims, { namespace: 'liqo-storage', name: 'u-1' }] as const;
    const used = clusterOf([...storage, claim]);
    expect((await remove(used.kube, true)).map((one) => `${nameOf(one)}: ${one.note}`)).toEqual([
      'Namespace liqo-storage: 1 claims in it have the data of volumes in this cluster',
    ]);
    expect(used.find(persistentVolumeClaims, { namespace: 'liqo-storage', name: 'u-1' })).toBeDefined();
    expect(used.find(storageClasses, { name: 'liqo' })).toBeUndefined();
    expect(used.find(storageClasses, { name: 'isthmus' })).toBeUndefined();
    expect(used.find(storageClasses, { name: 'disk' })).toBeDefined();
    expect(used.find(csiDrivers, { name: 'storage.isthmus.dev' })).toBeUndefined();
    expect(used.find(csiDrivers, { name: 'disk.example.com' })).toBeDefined();
    expect(used.find(csiStorageCapacities, { namespace: 'liqo-storage', name: 'isthmus-1' })).toBeUndefined();
    expect(used.find(csiStorageCapacities, { namespace: 'liqo-storage', name: 'disk-1' })).toBeDefined();
    const empty = clusterOf(storage);
    expect(await remove(empty.kube, false)).toEqual([]);
    expect(empty.find(namespaces, { name: 'liqo-storage' })).toBeUndefined();
  });

  test('keeps the namespace of real claims when one is made after the first look at it', async () => {
    const labels = { 'app.kubernetes.io/part-of': 'isthmus' };
    const { kube, find, add } = clusterOf([[namespaces, { name: 'liqo-storage', labels }]]);
    const late = { namespace: 'liqo-storage', name: 'u-2' };
    let looks = 0;
    const racing: KubeClient = {
      ...kube,
      async list<T extends KubeObject>(type: ResourceType<T>, selector?: string, namespace?: string): Promise<T[]> {
        const found = await kube.list(type, selector, namespace);
        const isFirst = type.plural === persistentVolumeClaims.plural && namespace === late.namespace && looks++ === 0;
        if (isFirst) add(persistentVolumeClaims, late);
        return found;
      },
    };
    expect((await remove(racing, true)).map(nameOf)).toEqual(['Namespace liqo-storage']);
    expect(find(persistentVolumeClaims, late)?.metadata.deletionTimestamp).toBeUndefined();
    expect(find(namespaces, { name: 'liqo-storage' })?.metadata.deletionTimestamp).toBeUndefined();
  });

  test('leaves no claim of a guest with its guard, however often it changes meanwhile, and none whose volume would go with it', async () => {
    type Row = readonly [ResourceType, Partial<ObjectMeta> & { name: string }, object];
    const guest = (name: string): Row => [
      persistentVolumeClaims,
      { namespace: 'shop-rome', name, labels: { [guestVolume.label]: 'rome' }, finalizers: [guestVolume.finalizer] },
      { spec: { volumeName: `pv-${name}` } },
    ];
    const volume = (name: string): Row => [
      persistentVolumes,
      { name: `pv-${name}` },
      { spec: { persistentVolumeReclaimPolicy: 'Delete' } },
    ];
    const names = ['a', 'b', 'c'];
    const { kube, find } = clusterOf([...names.map(guest), ...names.map(volume)]);
    const trouble = ['kube_conflict', 'kube_not_found', 'kube_conflict'] as const;
    let failed = 0;
    const busy: KubeClient = {
      ...kube,
      async mergePatch(type, ref, patch, subresource) {
        const code = type.plural === persistentVolumeClaims.plural ? trouble[failed++] : undefined;
        if (code !== undefined) throw new AppError(code, 'it has changed');
        await kube.mergePatch(type, ref, patch, subresource);
      },
    };
    await remove(busy, true);
    for (const name of names) {
      expect(find(persistentVolumeClaims, { namespace: 'shop-rome', name })?.metadata.finalizers).toEqual([]);
      expect(find(persistentVolumes, { name: `pv-${name}` })?.spec).toMatchObject({
        persistentVolumeReclaimPolicy: 'Retain',
      });
    }
  });

  test('leaves no volume whose data is kept reserved for a claim that nothing guards any more', async () => {
    const labels = { [guestVolume.keptFor]: 'rome' };
    const keptClaim = { namespace: 'shop-rome', name: 'data', uid: 'u-1' };
    const annotations = { [keptAnnotation.remoteClaim]: JSON.stringify(keptClaim) };
    const bound = { namespace: 'shop-rome', name: 'data', uid: 'u-2' };
    const { kube, find } = clusterOf([
      [
        persistentVolumes,
        { name: 'reserved', labels, annotations },
        { spec: { claimRef: { namespace: 'shop-rome', name: 'data' } } },
      ],
      [persistentVolumes, { name: 'being-bound', labels, annotations }, { spec: { claimRef: bound } }],
    ]);
    await remove(kube, true);
    expect(find(persistentVolumes, { name: 'reserved' })?.spec).toEqual({ claimRef: keptClaim });
    expect(find(persistentVolumes, { name: 'being-bound' })?.spec).toEqual({ claimRef: bound });
  });

  test('keeps volumes that it made, and takes off what would hold them for ever', async () => {
    const volume = (name: string, by: string, finalizers: string[]) =>
      [
        persistentVolumes,
        { name, annotations: { 'pv.kubernetes.io/provisioned-by': by }, finalizers },
        { spec: { claimRef: { namespace: 'shop', name: 'data' } } },
      ] as const;
    const ours = 'external-provisioner.volume.kubernetes.io/finalizer';
    const protection = 'kubernetes.io/pv-protection';
    const { kube, find } = clusterOf([
      volume('pvc-1', 'liqo.io/storage', [protection, ours]),
      volume('pvc-3', 'storage.isthmus.dev', [protection, ours]),
      volume('pvc-2', 'disk.example.com', [protection, ours]),
    ]);
    const kept = await remove(kube, true);
    expect(kept.map((one) => `${nameOf(one)}: ${one.note}`)).toEqual([
      'PersistentVolume pvc-1: the volume of claim shop/data',
      'PersistentVolume pvc-3: the volume of claim shop/data',
    ]);
    expect(find(persistentVolumes, { name: 'pvc-1' })?.metadata.finalizers).toEqual([protection]);
    expect(find(persistentVolumes, { name: 'pvc-2' })?.metadata.finalizers).toEqual([protection, ours]);
  });

  test('ends the wait of pods for a volume that moves, and lets its claim go', async () => {
    const gates = [{ name: 'example.com/quota' }, { name: 'isthmus.dev/volume-move' }];
    const labels = { app: 'db', 'isthmus.dev/waiting-for-volume-move': 'true' };
    const { kube, find } = clusterOf([
      [pods, { namespace: 'shop', name: 'db-0', labels }, { spec: { schedulingGates: gates } }],
      [
        persistentVolumeClaims,
        {
          namespace: 'shop',
          name: 'data-db-0',
          annotations: { 'isthmus.dev/volume-move': 'm', team: 'a' },
          finalizers: ['kubernetes.io/pvc-protection', 'isthmus.dev/volume-move'],
        },
      ],
      [persistentVolumeClaims, { namespace: 'shop', name: 'other', finalizers: ['kubernetes.io/pvc-protection'] }],
    ]);
    expect(await remove(kube, false)).toEqual([]);
    const pod = find(pods, { namespace: 'shop', name: 'db-0' });
    expect([pod?.metadata.labels, pod?.spec]).toEqual([{ app: 'db' }, { schedulingGates: gates.slice(0, 1) }]);
    const { annotations, finalizers } =
      find(persistentVolumeClaims, { namespace: 'shop', name: 'data-db-0' })?.metadata ?? {};
    expect([annotations, finalizers]).toEqual([{ team: 'a' }, ['kubernetes.io/pvc-protection']]);
  });
});
