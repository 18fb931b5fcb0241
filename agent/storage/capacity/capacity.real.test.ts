/** A real kube-scheduler and claims of class isthmus: pods go where there is room for their volumes, here or at the provider, and wait where there is none. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createVirtualNodeController } from '#agent/offloading/consumer/virtual-node/controller.ts';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { typeOf } from '#cli/install/apply.ts';
import { storageManifests } from '#cli/install/storage-manifests.ts';
import {
  csiDrivers,
  csiStorageCapacities,
  namespaces,
  nodes,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
} from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  createVirtualNode,
  mapNamespaces,
  type OffloadingClusters,
  startOffloadingClusters,
  tenantNamespace,
} from '#test/harness/offloading-clusters.ts';
import { type Scheduler, startScheduler } from '#test/harness/scheduler.ts';
import { startSteadyNode } from '#test/harness/steady-node.ts';
import { provisionVolumes, recordsDriver, type VolumeProvisioner } from '#test/harness/volume-provisioner.ts';
import { ReachableProviders } from '../providers/reachable-providers.ts';
import { createStorageControllers } from '../storage.ts';

const deps = { clock: systemClock, log: silentLog };
const end = new AbortController();
const storageNamespace = 'liqo-storage';
let world: OffloadingClusters;
let running: Promise<unknown>;
let disks: VolumeProvisioner[] = [];
let scheduler: Scheduler;

beforeAll(async () => {
  world = await startOffloadingClusters(['shop']);
  const { consumer, provider } = world;
  await startSteadyNode(consumer.api, 'worker', { 'kubernetes.io/hostname': 'worker' }, end.signal);
  disks = [
    await provisionVolumes(consumer, { className: 'disk', waitsForNode: true }),
    await provisionVolumes(provider, { className: 'fast' }),
  ];
  for (const object of storageManifests({ className: 'liqo', capacityClassName: 'isthmus', isDefault: false }))
    await consumer.api.apply(typeOf(object), object, { fieldManager: 'isthmus-cli' });
  const common = {
    ...deps,
    cluster: consumer,
    clusterId: 'cons',
    providers: new ReachableProviders(),
    systemNamespace: 'liqo',
    podName: 'agent',
  };
  const controllers = [
    ...createStorageControllers(common),
    createVirtualNodeController({
      ...common,
      ids: systemIds,
      podIp: '127.0.0.1',
      kubeletPortBase: 11_290,
      connectPeer: createConnectCluster(deps),
    }),
  ];
  running = Promise.all(controllers.map((one) => one.run(end.signal)));
  await createVirtualNode(world, 'vn1', offering('2Gi'));
  await mapNamespaces(world, ['shop']);
  scheduler = startScheduler(world.servers.consumer);
  await eventually('the Node is ready', async () => {
    const node = await consumer.api.get(nodes, { name: 'vn1' });
    return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
  });
}, 900_000);
afterAll(async () => {
  await scheduler?.stop();
  await Promise.all(disks.map((one) => one.stop()));
  end.abort();
  await running;
  await world?.stop();
});

function offering(maximumVolumeSize: string) {
  return { storageClasses: [{ storageClassName: 'fast', default: true, maximumVolumeSize }] };
}
const offer = (maximumVolumeSize: string) =>
  world.consumer.api.mergePatch(
    virtualNodes,
    { namespace: tenantNamespace, name: 'vn1' },
    { spec: offering(maximumVolumeSize) },
  );
const is = (node: string) => ({
  matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }],
});
const must = (node: string) => ({ requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [is(node)] } });
const rather = (node: string) => ({
  preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference: is(node) }],
});

async function use(name: string, storage: string, nodeAffinity: object): Promise<void> {
  const { api } = world.consumer;
  await api.create(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace: 'shop', name },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'isthmus', resources: { requests: { storage } } },
  } as PersistentVolumeClaim);
  await api.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'shop', name },
    spec: {
      containers: [{ name: 'app', image: 'demo:1' }],
      tolerations: [{ key: 'virtual-node.liqo.io/not-allowed', operator: 'Exists', effect: 'NoExecute' }],
      affinity: { nodeAffinity },
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
    },
  } as unknown as Pod);
}
const pod = (name: string) => world.consumer.api.get(pods, { namespace: 'shop', name });
const placed = (name: string) =>
  eventually(
    `the node of pod ${name}`,
    async () => {
      const found = await pod(name);
      if (found?.spec?.nodeName) return found.spec.nodeName;
      throw new Error(JSON.stringify(found?.status?.conditions));
    },
    { withinMs: 60_000 },
  );
const without = (name: string) =>
  eventually(
    `pod ${name} is told that there is no room`,
    async () => {
      const scheduled = (await pod(name))?.status?.conditions?.find(({ type }) => type === 'PodScheduled');
      if (scheduled?.message?.includes('did not have enough free storage')) return scheduled.message;
      throw new Error(JSON.stringify(scheduled));
    },
    { withinMs: 60_000 },
  );
const volumeOf = async (name: string) => {
  const claim = await eventually(`claim ${name} is Bound`, async () => {
    const found = await world.consumer.api.get(persistentVolumeClaims, { namespace: 'shop', name });
    return found?.status?.phase === 'Bound' ? found : undefined;
  });
  return world.consumer.api.get(persistentVolumes, { name: claim.spec?.volumeName ?? '' });
};
const ours = async () =>
  (await world.consumer.api.list(csiStorageCapacities, { namespace: storageNamespace })).map(
    ({ storageClassName, nodeTopology, capacity }) => ({ storageClassName, nodeTopology, capacity }),
  );

test('a pod whose claim is larger than what the provider has left waits for it, and runs there once there is more', async () => {
  await use('large', '5Gi', must('vn1'));
  expect(await without('large')).toContain('1 node(s) did not have enough free storage');
  await offer('8Gi');
  expect(await placed('large')).toBe('vn1');
  expect((await volumeOf('large'))?.spec?.csi?.driver).toBe('storage.isthmus.dev');
});

test('a pod that would rather run at the provider runs there while its claim fits, and here when it does not', async () => {
  await use('fits', '8Gi', rather('vn1'));
  expect(await placed('fits')).toBe('vn1');
  await use('grand', '9Gi', rather('vn1'));
  expect(await placed('grand')).toBe('worker');
  expect((await volumeOf('grand'))?.spec?.csi?.driver).toBe(recordsDriver);
});

test('where the driver of this cluster says what it has, claims here are held to that', async () => {
  const { api } = world.consumer;
  await api.create(csiDrivers, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: recordsDriver },
    spec: { attachRequired: false, storageCapacity: true },
  });
  await eventually('nothing is known of this cluster', async () => (await ours()).length === 1);
  const at = { namespace: storageNamespace, name: 'disk-worker' };
  await api.create(csiStorageCapacities, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIStorageCapacity',
    metadata: at,
    storageClassName: 'disk',
    nodeTopology: { matchLabels: { 'kubernetes.io/hostname': 'worker' } },
    capacity: '1Gi',
  } as never);
  await eventually('what is known of it', async () => (await ours()).some(({ capacity }) => capacity === '1Gi'));
  await use('here', '3Gi', must('worker'));
  await without('here');
  await api.mergePatch(csiStorageCapacities, at, { capacity: '4Gi' });
  expect(await placed('here')).toBe('worker');
});

test('what is said of a provider goes with its virtual node, and everything with the class', async () => {
  const { api } = world.consumer;
  const ofProvider = { matchLabels: { 'liqo.io/remote-cluster-id': 'prov' } };
  expect(await ours()).toContainEqual({ storageClassName: 'isthmus', nodeTopology: ofProvider, capacity: '8Gi' });
  await api.delete(virtualNodes, { namespace: tenantNamespace, name: 'vn1' });
  await eventually('nothing is said of the provider', async () =>
    (await ours()).every(({ nodeTopology }) => JSON.stringify(nodeTopology) !== JSON.stringify(ofProvider)),
  );
  for (const object of storageManifests({ className: 'liqo', capacityClassName: 'isthmus', isDefault: false }))
    if (object.kind === 'StorageClass') await api.delete(typeOf(object), { name: object.metadata.name });
  await eventually('only what the driver itself says is left', async () => {
    const left = await ours();
    return left.length === 1 && left[0]?.storageClassName === 'disk';
  });
  expect(await api.get(namespaces, { name: storageNamespace })).toBeDefined();
});
