import { describe, expect, test } from 'vitest';
import { capturedIo } from '#cli/captured-io.ts';
import type { KubeClient } from '#cli/cluster/open.ts';
import { createProgress } from '#cli/output/progress.ts';
import {
  certificateSigningRequests,
  clusterRoleBindings,
  csiDrivers,
  csiStorageCapacities,
  namespaces,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  roleBindings,
  secrets,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { guestVolume, keptAnnotation } from '#shared/domain/guest-volume-keys.ts';
import type { KubeObject, ObjectMeta, ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import { finalizer } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { isKept, nameOf, ownObjects } from './own-objects.ts';
import { securityContextConstraints } from './platform-manifests.ts';
import { removeIsthmus } from './remove.ts';

type Any = KubeObject & Record<string, unknown>;
interface Stored {
  readonly type: ResourceType;
  readonly object: Any;
}

const merged = (target: unknown, patch: unknown): unknown => {
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = { ...(target as Record<string, unknown>) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
};

/** A cluster in memory: namespaces take along what is in them, finalizers hold what is deleted. `stuck`: pods that never end. */
function clusterOf(objects: readonly (readonly [ResourceType, Partial<ObjectMeta> & { name: string }, object?])[]) {
  const keyOf = (type: ResourceType, { namespace, name }: ObjectRef) => `${type.plural} ${namespace ?? ''}/${name}`;
  const all = new Map<string, Stored>();
  for (const [type, metadata, more = {}] of objects)
    all.set(keyOf(type, metadata), { type, object: { apiVersion: 'v1', kind: type.kind, metadata, ...more } });
  const mark = ({ object }: Stored): void => {
    object.metadata.deletionTimestamp ??= '2026-11-22T00:00:00Z';
  };
  const settle = (): void => {
    for (const [key, { type, object }] of all) {
      if (object.metadata.deletionTimestamp === undefined || object.metadata.finalizers?.length) continue;
      const isNamespace = type.plural === namespaces.plural;
      const inside = [...all.values()].filter(
        (one) => isNamespace && one.object.metadata.namespace === object.metadata.name,
      );
      if (inside.length === 0) all.delete(key);
      else inside.forEach(mark);
    }
  };
  const list = async (type: ResourceType, selector?: string, namespace?: string): Promise<Any[]> => {
    settle();
    const wanted = (selector ?? '').split(',').filter(Boolean);
    const has = ({ metadata: { labels = {} } }: Any) =>
      wanted.every((one) => {
        const [key = '', value] = one.split('=');
        return value === undefined ? key in labels : labels[key] === value;
      });
    return [...all.values()]
      .filter((one) => one.type.plural === type.plural && one.type.group === type.group)
      .map(({ object }) => object)
      .filter((object) => has(object) && (namespace === undefined || object.metadata.namespace === namespace));
  };
  const kube = {
    server: 'https://192.0.2.1:6443',
    get: async (type: ResourceType, ref: ObjectRef) => all.get(keyOf(type, ref))?.object,
    list,
    collect: async (type: ResourceType, keep: (object: Any) => unknown) =>
      (await list(type)).flatMap((object) => keep(object) ?? []),
    async delete(type: ResourceType, ref: ObjectRef) {
      const found = all.get(keyOf(type, ref));
      if (found) mark(found);
      settle();
      return found !== undefined;
    },
    async mergePatch(type: ResourceType, ref: ObjectRef, patch: object) {
      const found = all.get(keyOf(type, ref));
      if (found) all.set(keyOf(type, ref), { type, object: merged(found.object, patch) as Any });
      settle();
    },
  } as unknown as KubeClient;
  return {
    kube,
    find: (type: ResourceType, ref: ObjectRef) => all.get(keyOf(type, ref))?.object,
    add: (type: ResourceType, metadata: Partial<ObjectMeta> & { name: string }) =>
      void all.set(keyOf(type, metadata), { type, object: { apiVersion: 'v1', kind: type.kind, metadata } }),
  };
}

const io = () => {
  let now = 0;
  const sleep = async (ms: number): Promise<void> => {
    now += ms;
  };
  return capturedIo({ clock: { now: () => now, sleep } });
};
const remove = (kube: KubeClient, purge: boolean) => {
  const under = io();
  return removeIsthmus(under, createProgress(under), kube, { purge, timeoutMs: 60_000 });
};

const managed = { 'liqo.io/managed': 'true' };
const peer = { 'liqo.io/remote-cluster-id': 'milan' };
const tenantNamespace = 'liqo-tenant-milan';
/** A cluster that was peered both ways and whose agent is gone. */
const peered = () =>
  clusterOf([
    [namespaces, { name: 'liqo' }],
    [namespaces, { name: tenantNamespace, labels: { ...peer, 'liqo.io/tenant-namespace': 'true' } }],
    [namespaces, { name: 'guest-milan', labels: { ...peer, ...managed } }],
    [namespaces, { name: 'demo', labels: { team: 'shop', 'liqo.io/scheduling-enabled': 'true' } }],
    [namespaces, { name: 'by-hand', labels: { 'liqo.io/scheduling-enabled': 'true' } }],
    [namespaceOffloadings, { namespace: 'demo', name: 'offloading', finalizers: [finalizer.namespaceOffloading] }],
    [tenants, { namespace: tenantNamespace, name: 'milan', finalizers: [finalizer.tenant] }],
    [
      secrets,
      {
        namespace: tenantNamespace,
        name: 'kubeconfig',
        labels: peer,
        finalizers: [finalizer.replicatorSecret, 'a.example/b'],
      },
    ],
    [secrets, { namespace: 'liqo', name: 'authentication-keys' }],
    [foreignClusters, { name: 'milan' }],
    [networkKinds.internalNodes, { name: 'node-1', finalizers: ['internalnodes-route.liqo.io/finalizer'] }],
    [nodes, { name: 'milan', labels: { 'liqo.io/type': 'virtual-node' } }],
    [
      nodes,
      { name: 'node-1', labels: { 'networking.isthmus.dev/node-process': 'shared', 'kubernetes.io/os': 'linux' } },
    ],
    [clusterRoleBindings, { name: 'liqo-binding-milan', labels: { ...managed, ...peer } }],
    [roleBindings, { namespace: 'guest-milan', name: 'liqo-binding', labels: { ...managed, ...peer } }],
    [clusterRoleBindings, { name: 'cluster-admin' }],
    [certificateSigningRequests, { name: 'liqo-milan', labels: managed }],
    [
      pods,
      { namespace: 'demo', name: 'waits', labels: { app: 'web', 'isthmus.dev/waiting-for-offloading': 'true' } },
      { spec: { schedulingGates: [{ name: 'isthmus.dev/offloading' }, { name: 'example.com/quota' }] } },
    ],
  ]);

describe('taking Isthmus out', () => {
  test('keeps what people and peers own, and says why', async () => {
    const { kube, find } = peered();
    const kept = await remove(kube, false);
    expect(kept.map((one) => `${nameOf(one)}: ${one.note}`).sort()).toEqual([
      'ForeignCluster milan: removed with --purge',
      'Namespace demo: its label liqo.io/scheduling-enabled goes with --purge',
      'Namespace guest-milan: pods of milan ran in it; delete it when they are not needed',
      'Namespace liqo-tenant-milan: removed with --purge',
      'NamespaceOffloading demo/offloading: removed with --purge',
      'Tenant liqo-tenant-milan/milan: removed with --purge',
    ]);
    expect(find(clusterRoleBindings, { name: 'cluster-admin' })).toBeDefined();
    expect(find(namespaces, { name: 'by-hand' })?.metadata.labels).toEqual({ 'liqo.io/scheduling-enabled': 'true' });
  });

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

  test('deletes only what it saw: an object that was replaced under its name stays', async () => {
    const labels = { 'app.kubernetes.io/part-of': 'isthmus' };
    const { kube } = clusterOf([
      [storageClasses, { name: 'liqo', uid: 'u-1', labels }, { provisioner: 'liqo.io/storage' }],
    ]);
    const asked: unknown[] = [];
    await remove(
      {
        ...kube,
        async delete(type, ref, uid) {
          asked.push([type.kind, ref.name, uid]);
          return kube.delete(type, ref, uid);
        },
      },
      true,
    );
    expect(asked).toContainEqual(['StorageClass', 'liqo', 'u-1']);
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

  test('leaves no finalizer of ours that would hold what is kept for ever', async () => {
    const { kube, find } = peered();
    await remove(kube, false);
    expect(find(namespaceOffloadings, { namespace: 'demo', name: 'offloading' })?.metadata.finalizers).toBeUndefined();
    expect(find(tenants, { namespace: tenantNamespace, name: 'milan' })?.metadata.finalizers).toBeUndefined();
    const secret = find(secrets, { namespace: tenantNamespace, name: 'kubeconfig' });
    expect(secret?.metadata.finalizers).toEqual(['a.example/b']);
  });

  test('takes its marks off what others made, and nothing else', async () => {
    const { kube, find } = peered();
    await remove(kube, false);
    expect(find(nodes, { name: 'node-1' })?.metadata.labels).toEqual({ 'kubernetes.io/os': 'linux' });
    expect(find(nodes, { name: 'milan' })).toBeUndefined();
    const pod = find(pods, { namespace: 'demo', name: 'waits' });
    expect([pod?.metadata.labels, pod?.spec]).toEqual([
      { app: 'web' },
      { schedulingGates: [{ name: 'example.com/quota' }] },
    ]);
  });

  test('takes the rights of peers away, in every namespace', async () => {
    const { kube, find } = peered();
    await remove(kube, false);
    expect(find(clusterRoleBindings, { name: 'liqo-binding-milan' })).toBeUndefined();
    expect(find(roleBindings, { namespace: 'guest-milan', name: 'liqo-binding' })).toBeUndefined();
    expect(find(certificateSigningRequests, { name: 'liqo-milan' })).toBeUndefined();
  });

  test('takes the constraints of gateways on OpenShift away, and no others', async () => {
    const labels = { 'app.kubernetes.io/part-of': 'isthmus' };
    const { kube, find } = clusterOf([
      [namespaces, { name: 'liqo' }],
      [securityContextConstraints, { name: 'isthmus-gateway', labels }],
      [securityContextConstraints, { name: 'restricted-v2' }],
    ]);
    expect(await remove(kube, false)).toEqual([]);
    expect(find(securityContextConstraints, { name: 'isthmus-gateway' })).toBeUndefined();
    expect(find(securityContextConstraints, { name: 'restricted-v2' })).toBeDefined();
  });

  test('with purge names what a foreign finalizer holds, and goes on once it is off', async () => {
    const { kube, find } = peered();
    await expect(remove(kube, true)).rejects.toMatchObject({
      code: 'deadline_exceeded',
      message: expect.stringContaining('Namespace liqo-tenant-milan'),
    });
    const held = { namespace: tenantNamespace, name: 'kubeconfig' };
    await kube.mergePatch(secrets, held, { metadata: { finalizers: null } });
    const kept = await remove(kube, true);
    expect(kept.map(nameOf)).toEqual(['Namespace guest-milan']);
    expect(find(namespaces, { name: 'demo' })?.metadata.labels).toEqual({ team: 'shop' });
    expect((await ownObjects(io(), kube, true)).every(isKept)).toBe(true);
  });

  test.each([
    { what: 'node processes', label: 'isthmus-fabric', name: 'isthmus-fabric' },
    { what: 'agent', label: 'controller-manager', name: 'isthmus-agent' },
  ])(
    'says on which node the $what do not end, and has removed nothing that they need',
    async ({ what, label, name }) => {
      const component = label === 'isthmus-fabric' ? 'fabric' : label;
      const labels = { 'app.kubernetes.io/name': label, 'app.kubernetes.io/component': component };
      const { kube, find } = clusterOf([
        [namespaces, { name: 'liqo' }],
        [clusterRoleBindings, { name, labels: { 'app.kubernetes.io/part-of': 'isthmus' } }],
        [pods, { namespace: 'liqo', name: 'lost', labels }, { spec: { nodeName: 'node-7' } }],
      ]);
      await expect(remove(kube, false)).rejects.toMatchObject({
        code: 'deadline_exceeded',
        message: `the pods of the ${what} do not end: lost on node-7`,
        detail: { remedy: expect.stringContaining('kubectl delete node') },
      });
      expect(find(clusterRoleBindings, { name })).toBeDefined();
    },
  );
});
