/** Claims of a virtual class on two API servers: bound here and at the provider, grown, taken down and kept. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createVirtualNodeController } from '#agent/offloading/consumer/virtual-node/controller.ts';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import {
  nodes,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { volumeFinalizer } from '#shared/domain/storage-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  boundPod,
  createVirtualNode,
  mapNamespaces,
  type OffloadingClusters,
  tenantNamespace,
} from '#test/harness/offloading-clusters.ts';
import { selectedNode, storageClaims } from '#test/harness/storage-claims.ts';
import { startStorageClusters } from '#test/harness/storage-clusters.ts';
import { recordsDriver, type VolumeProvisioner } from '#test/harness/volume-provisioner.ts';
import { amountOf } from './model/claims.ts';
import { ReachableProviders } from './providers/reachable-providers.ts';
import { createStorageControllers } from './storage.ts';

const deps = { clock: systemClock, log: silentLog };
const end = new AbortController();
let world: OffloadingClusters;
let running: Promise<unknown>;
let here: VolumeProvisioner;
let there: VolumeProvisioner;

beforeAll(async () => {
  ({ world, here, there } = await startStorageClusters());
  const { consumer } = world;
  const providers = new ReachableProviders();
  const common = {
    ...deps,
    cluster: consumer,
    clusterId: 'cons',
    providers,
    systemNamespace: 'liqo',
    podName: 'agent',
  };
  const controllers = [
    ...createStorageControllers(common),
    createVirtualNodeController({
      ...common,
      ids: systemIds,
      podIp: '127.0.0.1',
      kubeletPortBase: 11_250,
      systemNamespace: 'liqo',
      connectPeer: createConnectCluster(deps),
    }),
  ];
  running = Promise.all(controllers.map((one) => one.run(end.signal)));
  await createVirtualNode(world, 'vn1', { storageClasses: [{ storageClassName: 'fast', default: true }] });
  await mapNamespaces(world, ['shop']);
  await eventually('the Node', () => consumer.api.get(nodes, { name: 'vn1' }));
}, 900_000);
afterAll(async () => {
  await Promise.all([here?.stop(), there?.stop()]);
  end.abort();
  await running;
  await world?.stop();
});

const { makeClaim, claim, remote, bound, removeClaim, event } = storageClaims(() => world);
const volumeOf = async (found: PersistentVolumeClaim): Promise<PersistentVolume> => {
  const volume = await world.consumer.api.get(persistentVolumes, { name: found.spec?.volumeName ?? '' });
  if (!volume) throw new Error(`no volume of ${found.metadata.name}`);
  return volume;
};
const condition = async (name: string, type: string) =>
  (await claim(name))?.status?.conditions?.find((one) => one.type === type);
/** Awaits nothing, and its volume says which one at the provider it stands for. */
const stands = (name: string, realVolume: string | undefined) =>
  eventually(`claim ${name} with nothing to say`, async () => {
    const found = await claim(name);
    const { annotations } = (found && (await volumeOf(found)).metadata) ?? {};
    const [of, ofClass] = [annotations?.['isthmus.dev/real-volume'], annotations?.['isthmus.dev/real-storage-class']];
    return of === realVolume && ofClass === 'fast' && !found?.status?.conditions?.length;
  });

test('B108 a claim for a node of this cluster gets a real claim in liqo-storage and its volume, which no virtual node may mount; with it all goes', async () => {
  await makeClaim('here', 'worker', { volumeMode: 'Block' });
  const found = await bound('here');
  const { uid = '' } = found.metadata;
  const real = await world.consumer.api.get(persistentVolumeClaims, { namespace: 'liqo-storage', name: uid });
  expect(real?.spec).toMatchObject({ storageClassName: 'disk', volumeMode: 'Block' });
  await eventually('the mark to go', async () => {
    const now = await world.consumer.api.get(persistentVolumeClaims, { namespace: 'liqo-storage', name: uid });
    return now?.metadata.annotations?.['isthmus.dev/unpublished'] === undefined;
  });
  const volume = await volumeOf(found);
  expect(volume.metadata.name).toBe(`pvc-${uid}`);
  const csi = { driver: recordsDriver, volumeHandle: `pvc-${real?.metadata.uid}` };
  expect(volume.spec).toMatchObject({ volumeMode: 'Block', csi });
  expect(volume.spec?.nodeAffinity?.required?.nodeSelectorTerms).toEqual([
    {
      matchExpressions: [
        { key: 'kubernetes.io/hostname', operator: 'In', values: ['worker'] },
        { key: 'liqo.io/type', operator: 'DoesNotExist' },
      ],
    },
  ]);
  await removeClaim('here');
  await eventually('volume and real claim gone', async () => {
    const left = await world.consumer.api.list(persistentVolumeClaims, { namespace: 'liqo-storage' });
    return left.length === 0 && !(await world.consumer.api.get(persistentVolumes, { name: `pvc-${uid}` }));
  });
});

test('a class of provisioner storage.isthmus.dev binds in both clusters, too', async () => {
  const provisioner = 'storage.isthmus.dev';
  const [like] = (await world.consumer.api.list(storageClasses)).filter(({ metadata }) => metadata.name === 'liqo');
  if (!like) throw new Error('class liqo is missing');
  await world.consumer.api.create(storageClasses, { ...like, metadata: { name: 'aware' }, provisioner });
  const places = [
    { node: 'worker', driver: recordsDriver },
    { node: 'vn1', driver: provisioner },
  ];
  for (const { node, driver } of places) {
    const name = `aware-${node}`;
    await makeClaim(name, node, { storageClassName: 'aware' });
    const volume = await volumeOf(await bound(name));
    expect(volume.metadata.annotations?.['pv.kubernetes.io/provisioned-by']).toBe(provisioner);
    expect(volume.spec).toMatchObject({ storageClassName: 'aware', csi: { driver } });
    await removeClaim(name);
    const { metadata } = volume;
    await eventually(
      `volume ${metadata.name} gone`,
      async () => !(await world.consumer.api.get(persistentVolumes, { name: metadata.name })),
    );
  }
  expect(await remote('aware-vn1')).toBeUndefined();
});

test('a volume that an agent let go as it was taken out of the cluster is held again by the next one', async () => {
  await makeClaim('let-go', 'worker');
  const volume = await volumeOf(await bound('let-go'));
  const others = volume.metadata.finalizers?.filter((name) => name !== volumeFinalizer);
  const patch = { metadata: { finalizers: others } };
  await world.consumer.api.mergePatch(persistentVolumes, { name: volume.metadata.name }, patch);
  await eventually('its finalizer', async () =>
    (await volumeOf(await bound('let-go'))).metadata.finalizers?.includes(volumeFinalizer),
  );
  await removeClaim('let-go');
  await eventually(
    'it goes with its claim',
    async () => !(await world.consumer.api.get(persistentVolumes, { name: volume.metadata.name })),
  );
});

test('B106 a claim for a virtual node is bound at its provider, in the class that it offers, and says how it is there', async () => {
  await makeClaim('there', 'vn1');
  const found = await bound('there');
  const volume = await volumeOf(found);
  expect(volume.spec?.csi).toEqual({ driver: 'storage.isthmus.dev', volumeHandle: 'prov/shop-cons/there' });
  expect(volume.spec?.nodeAffinity?.required?.nodeSelectorTerms).toEqual([
    { matchExpressions: [{ key: 'liqo.io/remote-cluster-id', operator: 'In', values: ['prov'] }] },
  ]);
  const real = await remote('there');
  expect(real?.spec?.storageClassName).toBe('fast');
  expect(real?.metadata).toMatchObject({
    labels: { 'offloading.liqo.io/origin': 'cons', 'offloading.liqo.io/destination': 'prov' },
    annotations: {
      'isthmus.dev/claim': 'shop/there',
      'isthmus.dev/claim-uid': found.metadata.uid,
      'isthmus.dev/reclaim-policy': 'Delete',
    },
  });
  expect(real?.spec?.volumeName).toBeDefined();
  await stands('there', real?.spec?.volumeName);
});

test('its pod is offloaded and uses the claim of the provider, generic ephemeral volumes too', async () => {
  const { api } = world.consumer;
  const volumes = [
    { name: 'data', persistentVolumeClaim: { claimName: 'there' } },
    { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: {} } } },
  ];
  await makeClaim('app-scratch', 'vn1');
  await bound('app-scratch');
  const template = {
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'liqo' },
  };
  const [data] = volumes;
  const pod = boundPod('shop', 'app', 'vn1', {
    volumes: [data, { name: 'scratch', ephemeral: { volumeClaimTemplate: template } }],
  });
  await api.create(pods, pod);
  const shadow = await eventually('its ShadowPod', () =>
    world.provider.api.get(shadowPods, { namespace: 'shop-cons', name: 'app' }),
  );
  const used = shadow.spec.pod.volumes?.map(
    ({ name, persistentVolumeClaim }) => `${name} ${persistentVolumeClaim?.claimName}`,
  );
  expect(used?.slice(0, 2)).toEqual(['data there', 'scratch app-scratch']);
  await api.delete(pods, { namespace: 'shop', name: 'app' });
});

test('a claim that grows grows at the provider, and says that it has grown when it has', async () => {
  const storage = '2Gi';
  await world.consumer.api.mergePatch(
    persistentVolumeClaims,
    { namespace: 'shop', name: 'there' },
    { spec: { resources: { requests: { storage } } } },
  );
  await eventually('2Gi', async () => (await claim('there'))?.status?.capacity?.storage === storage);
  expect((await remote('there'))?.spec?.resources?.requests?.storage).toBe(storage);
  const found = await claim('there');
  expect((await volumeOf(found as PersistentVolumeClaim)).spec?.capacity?.storage).toBe(storage);
  await eventually('no condition', async () => ((await claim('there'))?.status?.conditions ?? []).length === 0);
});

test('B109 a claim that goes takes its data at the provider with it, which is told so first; one of a volume that is retained does not', async () => {
  const { api } = world.consumer;
  await makeClaim('kept', 'vn1');
  const { uid } = (await bound('kept')).metadata;
  await api.mergePatch(
    persistentVolumes,
    { name: `pvc-${uid}` },
    { spec: { persistentVolumeReclaimPolicy: 'Retain' } },
  );
  await eventually(
    'the provider to know',
    async () => (await remote('kept'))?.metadata.annotations?.['isthmus.dev/reclaim-policy'] === 'Retain',
  );
  const lastSeen: (string | undefined)[] = [];
  const watching = world.provider.caches.scoped(persistentVolumeClaims, { namespace: 'shop-cons' }, end.signal);
  watching.subscribe(({ before, after }) => {
    if (before && !after) lastSeen.push(`${before.metadata.name} ${before.metadata.annotations?.['isthmus.dev/data']}`);
  });
  await watching.synced();
  await removeClaim('there');
  await removeClaim('kept');
  await eventually('the remote claim gone', async () => (await remote('there')) === undefined);
  // The watch hears of it a moment after an answer of the API server shows it.
  await eventually('the deletion to be watched', () => lastSeen.length > 0);
  expect(lastSeen).toEqual(['there delete']);
  await eventually(
    'Released',
    async () => (await api.get(persistentVolumes, { name: `pvc-${uid}` }))?.status?.phase === 'Released',
  );
  await api.delete(persistentVolumes, { name: `pvc-${uid}` });
  await eventually(
    'the volume gone',
    async () => (await api.get(persistentVolumes, { name: `pvc-${uid}` })) === undefined,
  );
  expect((await remote('kept'))?.metadata.deletionTimestamp).toBeUndefined();
});

test('a claim whose name is still taken there by a volume that is kept gets another one', async () => {
  await makeClaim('kept', 'vn1');
  const found = await bound('kept');
  const handle = (await volumeOf(found)).spec?.csi?.volumeHandle ?? '';
  expect(handle).toMatch(/^prov\/shop-cons\/kept-[0-9a-f]{8}$/);
  expect((await remote(handle.split('/')[2] ?? ''))?.metadata.annotations?.['isthmus.dev/claim-uid']).toBe(
    found.metadata.uid,
  );
});

test('a claim that is made again as soon as it was deleted waits for its name at the provider, by which an order to adopt finds it', async () => {
  for (let time = 1; time <= 4; time++) {
    await makeClaim('again', 'vn1');
    const { metadata } = await bound('again');
    expect((await remote('again'))?.metadata.annotations?.['isthmus.dev/claim-uid']).toBe(metadata.uid);
    await removeClaim('again');
    await eventually('its end', async () => (await claim('again')) === undefined, { everyMs: 2 });
  }
});

test('a claim at the provider that an earlier cluster of this name had begun is never deleted: it may have been written to', async () => {
  const { api } = world.provider;
  const at = { namespace: 'shop-cons', name: 'begun' };
  const annotations = {
    'isthmus.dev/claim': 'shop/begun',
    'isthmus.dev/claim-uid': 'of-the-earlier-cluster',
    'isthmus.dev/reclaim-policy': 'Delete',
    'isthmus.dev/unpublished': 'uid-of-its-kube-system',
  };
  await api.create(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      ...at,
      labels: { 'offloading.liqo.io/origin': 'cons', 'offloading.liqo.io/destination': 'prov' },
      annotations,
    },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests: { storage: '1Gi' } } },
  });
  await makeClaim('begun', 'vn1');
  const handle = (await volumeOf(await bound('begun'))).spec?.csi?.volumeHandle ?? '';
  expect(handle).toMatch(/^prov\/shop-cons\/begun-/);
  await world.consumer.api.delete(persistentVolumeClaims, { namespace: 'shop', name: 'begun' });
  await eventually('the new one to go', async () => {
    const name = handle.split('/')[2] ?? '';
    return (await api.get(persistentVolumeClaims, { ...at, name })) === undefined;
  });
  const left = await api.get(persistentVolumeClaims, at);
  expect(left?.metadata.annotations).toMatchObject(annotations);
  expect(left?.metadata.annotations?.['isthmus.dev/data']).toBeUndefined();
  expect(left?.metadata.deletionTimestamp).toBeUndefined();
});

test('a data source that is neither a claim nor a VolumeSnapshot is refused by an event that names field and value, and nothing is made for it', async () => {
  const snapshot = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeGroupSnapshot', name: 'monday' };
  // In spec.dataSource the API server drops kinds like these; this one it copies there.
  await makeClaim('restored', 'vn1', { dataSourceRef: snapshot });
  await makeClaim('imported', 'vn1', {
    dataSourceRef: { apiGroup: 'import.example.com', kind: 'Import', name: 'dump' },
  });
  const accepted = 'accepted is another PersistentVolumeClaim or a VolumeSnapshot of namespace shop';
  for (const [name, says] of [
    ['restored', 'spec.dataSource is VolumeGroupSnapshot monday'],
    ['imported', 'spec.dataSource is Import dump'],
  ] as const) {
    const { type, message } = await event(name, 'ProvisioningFailed');
    expect([type, message]).toEqual(['Warning', expect.stringContaining(`${says}: ${accepted}`)]);
    const { uid = '' } = (await claim(name))?.metadata ?? {};
    const real = { namespace: 'liqo-storage', name: uid };
    expect(await world.consumer.api.get(persistentVolumeClaims, real)).toBeUndefined();
    expect(await remote(name)).toBeUndefined();
    await removeClaim(name);
  }
});

test('what the provider does not offer is refused by name, and a node without storage is given up', async () => {
  await makeClaim('gold', 'vn1', {}, { 'liqo.io/remote-storage-class': 'gold' });
  expect((await event('gold', 'ProvisioningFailed')).message).toMatch(
    /gold, which cluster prov does not offer: accepted is one of fast/,
  );
  await world.consumer.api.mergePatch(
    virtualNodes,
    { namespace: tenantNamespace, name: 'vn1' },
    { spec: { storageClasses: [] } },
  );
  await makeClaim('none', 'vn1');
  await eventually('no node', async () => (await claim('none'))?.metadata.annotations?.[selectedNode] === undefined);
  expect((await event('none', 'ProvisioningFailed')).message).toMatch(/offers no storage/);
  const offered = { spec: { storageClasses: [{ storageClassName: 'fast', default: true }] } };
  await world.consumer.api.mergePatch(virtualNodes, { namespace: tenantNamespace, name: 'vn1' }, offered);
});

test('a claim that waits for its volume at the provider says so, and one that is lost there is never made again empty', async () => {
  there.makes = false;
  await makeClaim('late', 'vn1');
  await bound('late');
  const pending = await eventually('the condition', () => condition('late', 'isthmus.dev/RemoteBound'));
  expect(pending).toMatchObject({ status: 'False', reason: 'Pending' });
  expect(pending.message).toContain('claim shop-cons/late at cluster prov waits');
  await world.provider.api.delete(persistentVolumeClaims, { namespace: 'shop-cons', name: 'late' });
  await eventually(
    'RemoteLost',
    async () => (await condition('late', 'isthmus.dev/RemoteBound'))?.reason === 'RemoteLost',
  );
  expect(await remote('late')).toBeUndefined();
  there.makes = true;
});

test('60 lies of a provider about a claim change no other claim, no volume but its size, and nothing that was asked for', async () => {
  const { consumer, provider } = world;
  await makeClaim('lied', 'vn1');
  await makeClaim('other', 'worker');
  const [lied, other] = [await bound('lied'), await bound('other')];
  await stands('lied', (await remote('lied'))?.spec?.volumeName);
  const [truth] = [(await remote('lied'))?.metadata.annotations];
  const facts = async () => {
    const found = [await claim('lied'), await claim('other')];
    const volumes = await Promise.all([lied, other].map(volumeOf));
    const shown = volumes.map(({ metadata, spec }) => {
      const { capacity: _, ...rest } = spec ?? {};
      return [metadata.name, metadata.deletionTimestamp, rest];
    });
    return JSON.stringify([
      found.map((one) => [one?.metadata.uid, one?.metadata.deletionTimestamp, one?.spec]),
      shown,
      (await volumeOf(other)).spec?.capacity,
    ]);
  };
  const before = await facts();
  const uid = fc.constantFrom(lied.metadata.uid, other.metadata.uid, 'x', '');
  const annotations = fc.record(
    {
      'isthmus.dev/claim': fc.constantFrom('shop/other', 'shop/lied', 'kube-system/x', ''),
      'isthmus.dev/claim-uid': uid,
      'isthmus.dev/reclaim-policy': fc.constantFrom('Retain', 'Delete', 'x'),
      'isthmus.dev/data': fc.constantFrom('delete', 'keep', ''),
    },
    { requiredKeys: [] },
  );
  const storage = fc.constantFrom('1', '1Ti', '1e30', '0');
  const status = fc.record(
    {
      phase: fc.constantFrom('Pending', 'Bound', 'Lost'),
      capacity: fc.record({ storage }),
      accessModes: fc.constantFrom(['ReadWriteMany'], ['ReadOnlyMany'], []),
      conditions: fc.constantFrom(
        [],
        [{ type: 'Resizing', status: 'True', message: 'x'.repeat(4_000) }],
        [{ type: 'isthmus.dev/RemoteBound', status: 'True' }],
        [{ type: 'FileSystemResizePending', status: 'True', reason: 'WaitingForRealClaim' }],
      ),
      allocatedResources: fc.record({ storage }),
      allocatedResourceStatuses: fc.record({
        storage: fc.constantFrom('NodeResizePending', 'ControllerResizeInfeasible'),
      }),
    },
    { requiredKeys: [] },
  );
  const at = { namespace: 'shop-cons', name: 'lied' };
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        annotations.map((a) => ({ metadata: { annotations: a } })),
        status.map((s) => ({ status: s })),
      ),
      async (lie) => {
        const options = 'status' in lie ? ({ subresource: 'status' } as const) : {};
        await provider.api.mergePatch(persistentVolumeClaims, at, lie, options).catch((error: { code?: string }) => {
          if (error.code !== 'kube_invalid') throw error;
        });
        expect(await facts()).toBe(before);
        const counted = (await claim('lied'))?.status?.allocatedResources;
        expect(amountOf(counted)).toBeLessThanOrEqual(amountOf({ storage: '1Gi' }));
      },
    ),
    { numRuns: 60, endOnFailure: true },
  );
  const restored = { metadata: { annotations: { 'isthmus.dev/data': null, ...truth } } };
  await provider.api.mergePatch(persistentVolumeClaims, at, restored);
  const none = { conditions: [], allocatedResources: null, allocatedResourceStatuses: null };
  const size = { status: { phase: 'Bound', capacity: { storage: '1Gi' }, ...none } };
  await provider.api.mergePatch(persistentVolumeClaims, at, size, { subresource: 'status' });
  await stands('lied', (await remote('lied'))?.spec?.volumeName);
  expect(await facts()).toBe(before);
  expect(
    (await consumer.api.list(persistentVolumeClaims, { namespace: 'shop' })).map(({ metadata }) => metadata.name),
  ).toEqual(expect.arrayContaining(['lied', 'other']));
});
