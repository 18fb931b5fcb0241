import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { nodes, pods, secrets, services } from '#shared/domain/core-kinds.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { casesOf } from '#test/harness/cases.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { TestApiServer } from '#test/harness/kube-apiserver.ts';
import {
  boundPod,
  createVirtualNode,
  mapNamespaces,
  type OffloadingClusters,
  runPod,
  startOwnOffloadingClusters,
  tenantNamespace,
} from '#test/harness/offloading-clusters.ts';
import { type Running, startConsumer } from '#test/harness/reflection-clusters.ts';

const patient = { withinMs: 60_000 };
let world: OffloadingClusters<TestApiServer>;
let agent: Running;

beforeAll(async () => {
  world = await startOwnOffloadingClusters(['demo']);
}, 900_000);
afterAll(async () => await world?.stop());

const startAgent = (): Running => startConsumer(world, { kubeletPortBase: 12_250 });
async function restartAgent(): Promise<void> {
  await agent.stop();
  agent = startAgent();
}

beforeEach(() => {
  agent = startAgent();
});
afterEach(async () => {
  const { api } = world.consumer;
  await world.servers.provider.start();
  for (const { metadata } of await api.list(virtualNodes)) await remove(metadata.name);
  await eventually('all VirtualNodes gone', async () => (await api.list(virtualNodes)).length === 0, patient);
  await agent.stop();
});

const api = () => world.consumer.api;
const ref = (name: string) => ({ namespace: tenantNamespace, name });
const remove = (name: string) => api().delete(virtualNodes, ref(name));
const local = (name: string) => api().get(pods, { namespace: 'demo', name });
const shadow = (name: string) => world.provider.api.get(shadowPods, { namespace: 'demo-cons', name });
const condition = async (type: string) =>
  (await api().get(virtualNodes, ref('vn1')))?.status?.conditions?.find((c) => c.type === type);
const isReady = async (name: string): Promise<boolean> => {
  const node = await api().get(nodes, { name });
  return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
};

async function offloadedNode(name = 'vn1'): Promise<void> {
  await createVirtualNode(world, name);
  await mapNamespaces(world, ['demo']);
  await eventually('the Node', () => isReady(name));
}

test('B113 while the provider is away everything stays, and what happened meanwhile is made up for', async () => {
  await offloadedNode();
  await api().create(pods, boundPod('demo', 'old', 'vn1'));
  await runPod(world, 'demo-cons', 'old');
  await eventually('running', async () => (await local('old'))?.status?.phase === 'Running');
  await world.servers.provider.kill();
  const said = await eventually('the condition', async () => {
    const found = await condition('VirtualKubelet');
    return found?.reason === 'ProviderUnreachable' ? found : undefined;
  });
  expect(said.message).toContain('provider prov does not answer');
  await api().create(pods, boundPod('demo', 'new', 'vn1'));
  await restartAgent();
  expect((await local('old'))?.status?.phase).toBe('Running');
  await world.servers.provider.start();
  await eventually('the pod made up for', () => shadow('new'), patient);
  await eventually(
    'the condition gone',
    async () => (await condition('VirtualKubelet'))?.status === 'Running',
    patient,
  );
  expect((await local('old'))?.status?.containerStatuses?.[0]?.restartCount).toBe(0);
});

test('B116 a provider that was declared dead is not waited for', async () => {
  await offloadedNode();
  await api().create(pods, boundPod('demo', 'web', 'vn1', { terminationGracePeriodSeconds: 300 }));
  await runPod(world, 'demo-cons', 'web');
  await eventually('running', async () => (await local('web'))?.status?.phase === 'Running');
  await world.servers.provider.kill();
  await remove('vn1');
  await eventually('the drain', async () => (await condition('Node'))?.message?.includes('demo/web'));
  expect(await local('web')).toBeDefined();
  const annotations = { 'liqo.io/foreign-cluster-permanently-unreachable': 'true' };
  await api().create(foreignClusters, {
    apiVersion: 'core.liqo.io/v1beta1',
    kind: 'ForeignCluster',
    metadata: { name: 'prov', annotations },
    spec: { clusterID: 'prov' },
  });
  // Far less than the 300 s that the pod has to end.
  await eventually('the end', async () => (await api().list(virtualNodes)).length === 0, patient);
  expect(await local('web')).toBeUndefined();
  expect(await api().get(nodes, { name: 'vn1' })).toBeUndefined();
  await api().delete(foreignClusters, { name: 'prov' });
  await world.servers.provider.start();
  await world.provider.api.delete(shadowPods, { namespace: 'demo-cons', name: 'web' });
});

test('a renewed identity is used from then on, and its loss ends no connection', async () => {
  await offloadedNode();
  const secret = ref('kubeconfig-resourceslice-vn1');
  const renewed = Buffer.from(`# renewed\n${world.servers.provider.kubeconfig}`).toString('base64');
  await api().mergePatch(secrets, secret, { data: { kubeconfig: renewed } });
  await api().create(pods, boundPod('demo', 'web', 'vn1'));
  await eventually('the ShadowPod', () => shadow('web'));
  await api().delete(secrets, secret);
  await api().create(pods, boundPod('demo', 'later', 'vn1'));
  await eventually('the other ShadowPod', () => shadow('later'));
  await remove('vn1');
  await eventually('an orderly end', async () => (await api().list(virtualNodes)).length === 0, patient);
  expect(await world.provider.api.list(shadowPods)).toEqual([]);
});

test('B118 two nodes of one provider keep to their own pods, and the map stays for the one that stays', async () => {
  await offloadedNode('vn1');
  await offloadedNode('vn2');
  await api().create(pods, boundPod('demo', 'one', 'vn1'));
  await api().create(pods, boundPod('demo', 'two', 'vn2'));
  await eventually('both twins', async () => (await shadow('one')) && (await shadow('two')));
  const kept = await shadow('two');
  await remove('vn1');
  await eventually('the first node gone', async () => !(await api().get(virtualNodes, ref('vn1'))));
  expect(await shadow('one')).toBeUndefined();
  expect((await shadow('two'))?.metadata.uid).toBe(kept?.metadata.uid);
  expect(await api().get(namespaceMaps, ref('prov'))).toBeDefined();
  // A StatefulSet's pod that moves between them takes its name along.
  await api().create(pods, boundPod('demo', 'one', 'vn2'));
  await eventually(
    'the moved twin',
    async () => (await shadow('one'))?.metadata.labels?.['offloading.liqo.io/nodename'] === 'vn2',
  );
  await remove('vn2');
  await eventually('the map gone', async () => !(await api().get(namespaceMaps, ref('prov'))));
});

test('B117 without a Node the virtual node drains, stays, and gets its Node back when it is wanted again', async () => {
  await offloadedNode();
  await api().create(pods, boundPod('demo', 'web', 'vn1'));
  await eventually('the ShadowPod', () => shadow('web'));
  const daemon = boundPod('demo', 'daemon', 'vn1');
  daemon.metadata.ownerReferences = [
    { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'no-such', controller: true },
  ];
  await api().create(pods, daemon);
  await api().mergePatch(virtualNodes, ref('vn1'), { spec: { createNode: false } });
  await eventually('no Node', async () => (await condition('Node'))?.status === 'None');
  expect(await api().get(nodes, { name: 'vn1' })).toBeUndefined();
  expect(await local('web')).toBeUndefined();
  expect((await condition('VirtualKubelet'))?.status).toBe('Running');
  await api().create(services, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'demo', name: 'nodeless' },
    spec: { ports: [{ port: 80 }] },
  } as never);
  await eventually('the Service without a Node', () =>
    world.provider.api.get(services, { namespace: 'demo-cons', name: 'nodeless' }),
  );
  await api().delete(services, { namespace: 'demo', name: 'nodeless' });
  await api().mergePatch(virtualNodes, ref('vn1'), { spec: { createNode: true } });
  await eventually('the Node again', () => isReady('vn1'));
});

test('while the provider drains its slice the VirtualNode is without a Node, and keeps the remote namespaces with the volumes in them', async () => {
  const tell = (status: 'Accepted' | 'Denied', reason: string) =>
    api().mergePatch(
      resourceSlices,
      ref('vn1'),
      { status: { conditions: [{ type: 'Resources', status, reason }] } },
      { subresource: 'status' },
    );
  await api().create(resourceSlices, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'ResourceSlice',
    metadata: { name: 'vn1', namespace: tenantNamespace },
    spec: { class: 'default', providerClusterID: 'prov' },
  } as never);
  await offloadedNode();
  await api().mergePatch(virtualNodes, ref('vn1'), { metadata: { labels: { [label.resourceSliceName]: 'vn1' } } });
  await api().create(pods, boundPod('demo', 'web', 'vn1'));
  await eventually('the ShadowPod', () => shadow('web'));
  await tell('Denied', 'ResourceSliceDrained');
  await eventually('no Node', async () => (await condition('Node'))?.reason === 'Drained');
  expect(await api().get(nodes, { name: 'vn1' })).toBeUndefined();
  expect(await local('web')).toBeUndefined();
  const map = await api().get(namespaceMaps, ref('prov'));
  expect(map?.spec?.desiredMapping).toEqual({ demo: 'demo-cons' });
  await tell('Accepted', 'ResourceSliceResourcesAccepted');
  await eventually('the Node again', () => isReady('vn1'));
  await api().delete(resourceSlices, ref('vn1'));
});

/** A small generator, so that a failure can be repeated by its seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test.each(casesOf([1, 2, 3], [1]))(
  'killed at random moments (seed %i), the agent ends where it would have ended',
  async (seed) => {
    const next = random(seed);
    const pause = () => systemClock.sleep(next() * 120);
    await createVirtualNode(world, 'vn1');
    await pause();
    await restartAgent();
    await mapNamespaces(world, ['demo']);
    for (let i = 0; i < 6; i++) {
      await api().create(pods, boundPod('demo', `p${i}`, 'vn1'));
      if (next() < 0.5) {
        await pause();
        await restartAgent();
      }
      if (next() < 0.3) await api().delete(pods, { namespace: 'demo', name: `p${i}` });
    }
    await pause();
    await restartAgent();
    const wanted = (await api().list(pods))
      .filter(({ metadata }) => !metadata.deletionTimestamp)
      .map(({ metadata }) => metadata.name);
    await eventually('the same pods on both sides', async () => {
      const there = (await world.provider.api.list(shadowPods)).map(({ metadata }) => metadata.name);
      const here = (await api().list(pods)).map(({ metadata }) => metadata.name);
      return [there, here].every((names) => names.sort().join() === wanted.sort().join());
    });
    for (const name of wanted) await runPod(world, 'demo-cons', name);
    await eventually('all running', async () =>
      (await api().list(pods)).every(({ status }) => status?.phase === 'Running'),
    );
    expect((await api().list(pods)).every(({ status }) => status?.containerStatuses?.[0]?.restartCount === 0)).toBe(
      true,
    );
    await remove('vn1');
    await pause();
    await restartAgent();
    await pause();
    await restartAgent();
    await eventually('the end', async () => (await api().list(virtualNodes)).length === 0, patient);
    expect(await api().list(pods)).toEqual([]);
    expect(await api().get(nodes, { name: 'vn1' })).toBeUndefined();
    expect(await api().list(namespaceMaps)).toEqual([]);
    await eventually('nothing at the provider', async () => (await world.provider.api.list(pods)).length === 0);
    expect(await world.provider.api.list(shadowPods)).toEqual([]);
  },
);
