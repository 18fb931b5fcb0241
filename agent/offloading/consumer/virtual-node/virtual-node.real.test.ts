import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { certificateSigningRequests, coreEvents, leases, nodes, pods } from '#shared/domain/core-kinds.ts';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  boundPod,
  createVirtualNode,
  mapNamespaces,
  type OffloadingClusters,
  runPod,
  startOffloadingClusters,
  tenantNamespace,
} from '#test/harness/offloading-clusters.ts';
import { type Running, startConsumer } from '#test/harness/reflection-clusters.ts';

let world: OffloadingClusters;
let agent: Running;

beforeAll(async () => {
  world = await startOffloadingClusters(['demo', 'idle']);
}, 900_000);
afterAll(async () => await world?.stop());

const startAgent = (): Running => startConsumer(world, { kubeletPortBase: 11_250 });

beforeEach(() => {
  agent = startAgent();
});
afterEach(async () => {
  const { api } = world.consumer;
  for (const { metadata } of await api.list(virtualNodes)) {
    await api.delete(virtualNodes, { namespace: metadata.namespace ?? '', name: metadata.name });
  }
  for (const { metadata } of await api.list(pods)) {
    await api.delete(pods, { namespace: metadata.namespace ?? '', name: metadata.name }, { gracePeriodSeconds: 0 });
  }
  await eventually('all VirtualNodes gone', async () => (await api.list(virtualNodes)).length === 0, patient);
  await agent.stop();
});

const patient = { withinMs: 60_000 };
const node = (name = 'vn1'): Promise<Node | undefined> => world.consumer.api.get(nodes, { name });
const readyOf = (object: Node | Pod | undefined) =>
  (object?.status?.conditions as { type: string; status: string; reason?: string }[] | undefined)?.find(
    ({ type }) => type === 'Ready',
  );
const readyNode = (name = 'vn1') =>
  eventually(
    `Node ${name} Ready`,
    async () => {
      const found = await node(name);
      return readyOf(found)?.status === 'True' ? found : undefined;
    },
    { everyMs: 20 },
  );
const local = (name: string, namespace = 'demo') => world.consumer.api.get(pods, { namespace, name });
const shadow = (name: string) => world.provider.api.get(shadowPods, { namespace: 'demo-cons', name });
const remote = (name: string) => world.provider.api.get(pods, { namespace: 'demo-cons', name });

async function offloadedNode(name = 'vn1'): Promise<void> {
  await createVirtualNode(world, name);
  await mapNamespaces(world, ['demo']);
  await readyNode(name);
}

test('B001 B002 B003 B005 B006 a VirtualNode becomes a Ready Node with the capacity, labels and taint of its slice, and a lease', async () => {
  const labels = { 'kubernetes.io/arch': 'arm64', zone: 'x' };
  await createVirtualNode(world, 'vn1', { labels });
  const startedAt = Date.now();
  const found = await readyNode();
  const tookMs = Date.now() - startedAt;
  expect(found.metadata.labels).toMatchObject({
    'liqo.io/type': 'virtual-node',
    'liqo.io/remote-cluster-id': 'prov',
    zone: 'x',
  });
  expect(found.spec?.taints).toContainEqual({
    key: 'virtual-node.liqo.io/not-allowed',
    value: 'true',
    effect: 'NoExecute',
  });
  expect(readyOf(found)).toMatchObject({ status: 'True', reason: 'KubeletReady' });
  expect(found.status?.capacity).toEqual({ cpu: '4', memory: '8Gi', pods: '110' });
  expect(found.status?.allocatable).toEqual(found.status?.capacity);
  expect(found.status?.nodeInfo).toMatchObject({
    architecture: 'arm64',
    operatingSystem: 'linux',
    kubeletVersion: expect.stringMatching(/^v1\./),
  });
  expect(found.status?.addresses).toEqual([{ type: 'InternalIP', address: '127.0.0.1' }]);
  await eventually('the lease', () => world.consumer.api.get(leases, { namespace: 'kube-node-lease', name: 'vn1' }));
  const map = await eventually('the NamespaceMap', () =>
    world.consumer.api.get(namespaceMaps, { namespace: tenantNamespace, name: 'prov' }),
  );
  expect(map.metadata.labels).toMatchObject({
    'liqo.io/replication': 'true',
    'liqo.io/remoteID': 'prov',
    'liqo.io/remote-cluster-id': 'prov',
  });
  await eventually('conditions', async () => {
    const vn = await world.consumer.api.get(virtualNodes, { namespace: tenantNamespace, name: 'vn1' });
    return vn?.status?.conditions?.every(({ status }) => status === 'Running') && vn.status.conditions.length === 2;
  });
  console.info(`virtual node Ready after ${tookMs} ms`);
});

test('B004 the Node follows its VirtualNode and comes back when it is deleted', async () => {
  await createVirtualNode(world, 'vn1', { labels: { zone: 'x' } });
  const first = await readyNode();
  const spec = { resourceQuota: { hard: { cpu: '2', pods: null, memory: '1Gi' } }, labels: { zone: null } };
  await world.consumer.api.mergePatch(virtualNodes, { namespace: tenantNamespace, name: 'vn1' }, { spec });
  await eventually('the new capacity', async () => {
    const found = await node();
    return (
      JSON.stringify(found?.status?.capacity) === '{"cpu":"2","memory":"1Gi"}' &&
      found?.metadata.labels?.zone === undefined
    );
  });
  await world.consumer.api.delete(nodes, { name: 'vn1' });
  const second = await readyNode();
  expect(second.metadata.uid).not.toBe(first.metadata.uid);
});

test('a Node of the same name with another creator is left alone, and the VirtualNode says so', async () => {
  await world.consumer.api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'vn1' } } as Node);
  await createVirtualNode(world, 'vn1');
  await eventually('the condition', async () => {
    const vn = await world.consumer.api.get(virtualNodes, { namespace: tenantNamespace, name: 'vn1' });
    return vn?.status?.conditions?.some(({ reason }) => reason === 'NameTaken');
  });
  expect((await node())?.metadata.labels ?? {}).not.toHaveProperty('liqo.io/type');
  await world.consumer.api.delete(nodes, { name: 'vn1' });
});

test('B014 B016 B017 B018 a pod bound to the node runs at the provider, its status comes back, and its end is graceful', async () => {
  await offloadedNode();
  await world.consumer.api.create(pods, boundPod('demo', 'web', 'vn1'));
  const made = await eventually('the ShadowPod', () => shadow('web'));
  expect(made.metadata.labels).toMatchObject({
    app: 'web',
    'offloading.liqo.io/origin': 'cons',
    'offloading.liqo.io/destination': 'prov',
    'offloading.liqo.io/nodename': 'vn1',
  });
  expect(made.spec.pod.volumes?.[0]?.projected?.sources?.[0]?.secret?.name).toBe('web-token');
  await runPod(world, 'demo-cons', 'web');
  const running = await eventually('a Ready local pod', async () => {
    const pod = await local('web');
    return readyOf(pod)?.status === 'True' ? pod : undefined;
  });
  expect(running.metadata.labels).toMatchObject({ 'liqo.io/shadowPod': 'true' });
  expect(running.status).toMatchObject({ phase: 'Running', podIP: '10.9.9.9', hostIP: '127.0.0.1' });
  world.endsPods = false;
  try {
    await world.consumer.api.delete(pods, { namespace: 'demo', name: 'web' });
    await eventually('the ShadowPod gone', async () => !(await shadow('web')));
    await eventually(
      'the remote pod terminating',
      async () => (await remote('web'))?.metadata.deletionTimestamp !== undefined,
    );
    expect(await local('web')).toBeDefined();
  } finally {
    world.endsPods = true;
  }
  await world.provider.api.delete(pods, { namespace: 'demo-cons', name: 'web' }, { gracePeriodSeconds: 0 });
  await eventually('the local pod gone', async () => !(await local('web')));
});

test('B019 a pod deleted at the provider comes back there, and counts as one more restart here', async () => {
  await offloadedNode();
  await world.consumer.api.create(pods, boundPod('demo', 'web', 'vn1'));
  await runPod(world, 'demo-cons', 'web', 3);
  const restarts = async () => (await local('web'))?.status?.containerStatuses?.[0]?.restartCount;
  await eventually('three restarts', async () => (await restarts()) === 3);
  const before = await remote('web');
  await world.provider.api.delete(pods, { namespace: 'demo-cons', name: 'web' }, { gracePeriodSeconds: 0 });
  await eventually('another remote pod', async () => {
    const now = await remote('web');
    return now && now.metadata.uid !== before?.metadata.uid;
  });
  await eventually('not ready meanwhile', async () => readyOf(await local('web'))?.status === 'False');
  await agent.stop();
  agent = startAgent();
  await runPod(world, 'demo-cons', 'web', 0);
  await eventually('the restarts of both lives', async () => (await restarts()) === 4);
  await runPod(world, 'demo-cons', 'web', 2);
  await eventually('more restarts', async () => (await restarts()) === 6);
});

test('B111 a pod replaced under its name while the agent was away gets a new ShadowPod', async () => {
  await offloadedNode();
  await world.consumer.api.create(pods, boundPod('demo', 'db-0', 'vn1'));
  const first = await eventually('the first ShadowPod', () => shadow('db-0'));
  await agent.stop();
  await world.consumer.api.delete(pods, { namespace: 'demo', name: 'db-0' }, { gracePeriodSeconds: 0 });
  await world.consumer.api.create(
    pods,
    boundPod('demo', 'db-0', 'vn1', { containers: [{ name: 'app', image: 'demo:2' }] }),
  );
  agent = startAgent();
  await eventually('the second ShadowPod', async () => {
    const twin = await shadow('db-0');
    return twin && twin.metadata.uid !== first.metadata.uid && twin.spec.pod.containers[0]?.image === 'demo:2';
  });
});

test('B085 B110 B112 orphans are collected after a restart, labels and images follow, and nothing is written when nothing changed', async () => {
  await offloadedNode();
  await world.consumer.api.create(pods, boundPod('demo', 'web', 'vn1'));
  await world.consumer.api.create(pods, boundPod('demo', 'lost', 'vn1'));
  await eventually('both twins', async () => (await shadow('web')) && (await shadow('lost')));
  await runPod(world, 'demo-cons', 'web');
  await eventually('running', async () => (await local('web'))?.status?.phase === 'Running');
  await agent.stop();
  await world.consumer.api.delete(pods, { namespace: 'demo', name: 'lost' }, { gracePeriodSeconds: 0 });
  const [pod, twin] = [await local('web'), await shadow('web')];
  agent = startAgent();
  await eventually('the orphan collected', async () => !(await shadow('lost')));
  expect((await local('web'))?.metadata.resourceVersion).toBe(pod?.metadata.resourceVersion);
  expect((await shadow('web'))?.metadata.resourceVersion).toBe(twin?.metadata.resourceVersion);
  const change = { metadata: { labels: { tier: 'front' } }, spec: { containers: [{ name: 'app', image: 'demo:9' }] } };
  await world.consumer.api.jsonPatch(pods, { namespace: 'demo', name: 'web' }, [
    { op: 'add', path: '/metadata/labels/tier', value: change.metadata.labels.tier },
    { op: 'replace', path: '/spec/containers/0/image', value: 'demo:9' },
  ]);
  await eventually('the change at the provider', async () => {
    const now = await shadow('web');
    return now?.metadata.labels?.tier === 'front' && now.spec.pod.containers[0]?.image === 'demo:9';
  });
});

test('B031 B032 B033 B034 a pod of a namespace that is not offloaded waits, starts when it is, is aborted when it no longer is, and stays so', async () => {
  // Mapped to nothing from the beginning: a mapping that has just been taken away may be heard of after the pod.
  await createVirtualNode(world, 'vn1');
  await readyNode();
  await world.consumer.api.create(pods, boundPod('demo', 'web', 'vn1'));
  const explained = await eventually('the explanation', async () => {
    const found = await local('web');
    return found?.status?.reason === 'OffloadingBackOff' && found;
  });
  expect(explained.status?.phase).toBe('Pending');
  await eventually('the event about this very pod', async () =>
    (await world.consumer.api.list(coreEvents, { namespace: 'demo' })).some(
      ({ reason, involvedObject }) => reason === 'ReflectionDisabled' && involvedObject.uid === explained.metadata.uid,
    ),
  );
  await mapNamespaces(world, ['demo']);
  await runPod(world, 'demo-cons', 'web');
  await eventually('running', async () => {
    const { status } = (await local('web')) ?? {};
    return status?.phase === 'Running' && status.reason === undefined;
  });
  await mapNamespaces(world, []);
  await eventually('aborted', async () => {
    const { status } = (await local('web')) ?? {};
    return status?.phase === 'Failed' && status.reason === 'OffloadingAborted';
  });
  await mapNamespaces(world, ['demo']);
  await eventually('its ShadowPod gone', async () => !(await shadow('web')));
  await world.consumer.api.create(pods, boundPod('demo', 'marker', 'vn1'));
  await eventually('the ShadowPod of another', () => shadow('marker'));
  expect(await shadow('web')).toBeUndefined();
  expect((await local('web'))?.status?.reason).toBe('OffloadingAborted');
});

test('B040 a ShadowPod of that name that is not ours is left alone, and the pod says so', async () => {
  await offloadedNode();
  const theirs = await world.provider.api.create(shadowPods, {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'ShadowPod',
    metadata: { namespace: 'demo-cons', name: 'taken', labels: { 'offloading.liqo.io/origin': 'other-cluster' } },
    spec: { pod: { containers: [{ name: 'app', image: 'theirs' }] } },
  });
  await world.consumer.api.create(pods, boundPod('demo', 'taken', 'vn1'));
  const events = () => world.consumer.api.getPath('/apis/events.k8s.io/v1/namespaces/demo/events');
  await eventually('the event', async () => (await events()).includes('belongs to somebody else; rename the pod'));
  const after = await shadow('taken');
  expect([after?.metadata.uid, after?.metadata.generation, after?.spec.pod.containers[0]?.image]).toEqual([
    theirs.metadata.uid,
    theirs.metadata.generation,
    'theirs',
  ]);
  await world.consumer.api.delete(pods, { namespace: 'demo', name: 'taken' }, { gracePeriodSeconds: 0 });
  await eventually('the pod gone', async () => !(await local('taken')));
  expect((await shadow('taken'))?.metadata.deletionTimestamp).toBeUndefined();
  await world.provider.api.delete(shadowPods, { namespace: 'demo-cons', name: 'taken' });
});

test('a refusal of the provider is told on the pod', async () => {
  await offloadedNode();
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'quota' },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          { apiGroups: ['offloading.liqo.io'], apiVersions: ['*'], operations: ['CREATE'], resources: ['shadowpods'] },
        ],
      },
      validations: [
        { expression: "object.metadata.name != 'greedy'", message: 'quota exceeded: cpu, free 0, requested 4' },
      ],
    },
  };
  const binding = {
    apiVersion: policy.apiVersion,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'quota' },
    spec: { policyName: 'quota', validationActions: ['Deny'] },
  };
  await world.provider.api.postPath('/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies', policy);
  await world.provider.api.postPath('/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings', binding);
  await eventually('the policy in force', async () => {
    const probe = {
      apiVersion: 'offloading.liqo.io/v1beta1',
      kind: 'ShadowPod',
      metadata: { name: 'greedy', namespace: 'idle-cons' },
      spec: { pod: { containers: [{ name: 'x' }] } },
    };
    try {
      await world.provider.api.create(shadowPods, probe as never);
      await world.provider.api.delete(shadowPods, { namespace: 'idle-cons', name: 'greedy' });
      return false;
    } catch (error) {
      return error instanceof Error && error.message.includes('quota exceeded');
    }
  });
  await world.consumer.api.create(pods, boundPod('demo', 'greedy', 'vn1'));
  const pod = await eventually('the reason', async () => {
    const found = await local('greedy');
    return found?.status?.reason === 'OffloadingRefused' ? found : undefined;
  });
  expect(pod.status?.message).toMatch(/cluster prov refused the pod: .*quota exceeded: cpu, free 0, requested 4/);
});

test('B035 deleting the VirtualNode drains it, and leaves nothing on either side', async () => {
  await offloadedNode();
  const names = ['a', 'b', 'c'];
  for (const name of names) await world.consumer.api.create(pods, boundPod('demo', name, 'vn1'));
  for (const name of names) await runPod(world, 'demo-cons', name);
  await eventually('running', async () =>
    (await Promise.all(names.map((name) => local(name)))).every((pod) => pod?.status?.phase === 'Running'),
  );
  const startedAt = Date.now();
  await world.consumer.api.delete(virtualNodes, { namespace: tenantNamespace, name: 'vn1' });
  await eventually('the VirtualNode gone', async () => (await world.consumer.api.list(virtualNodes)).length === 0, {
    everyMs: 20,
  });
  const tookMs = Date.now() - startedAt;
  expect(await node()).toBeUndefined();
  expect(await world.consumer.api.list(pods)).toEqual([]);
  expect(await world.provider.api.list(shadowPods)).toEqual([]);
  expect(await world.provider.api.list(pods)).toEqual([]);
  expect(await world.consumer.api.list(namespaceMaps)).toEqual([]);
  expect(await world.consumer.api.list(certificateSigningRequests)).toEqual([]);
  expect(await world.consumer.api.get(leases, { namespace: 'kube-node-lease', name: 'vn1' })).toBeUndefined();
  console.info(`drained three pods and removed the node in ${tookMs} ms`);
});

test('a disruption budget holds the drain back, and the VirtualNode names it', async () => {
  await offloadedNode();
  await world.consumer.api.create(pods, boundPod('demo', 'web', 'vn1'));
  await runPod(world, 'demo-cons', 'web');
  await eventually('running', async () => readyOf(await local('web'))?.status === 'True');
  const budgets = '/apis/policy/v1/namespaces/demo/poddisruptionbudgets';
  const budget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web-budget' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
  };
  await world.consumer.api.postPath(budgets, budget);
  await eventually('the budget seen', async () => {
    const { status } = JSON.parse(await world.consumer.api.getPath(`${budgets}/web-budget`));
    return status?.currentHealthy === 1;
  });
  await world.consumer.api.delete(virtualNodes, { namespace: tenantNamespace, name: 'vn1' });
  await eventually('the obstacle', async () => {
    const vn = await world.consumer.api.get(virtualNodes, { namespace: tenantNamespace, name: 'vn1' });
    return vn?.status?.conditions?.some(
      ({ type, status, message }) =>
        type === 'Node' && status === 'Draining' && message?.includes('demo/web: ') && message.includes('web-budget'),
    );
  });
  expect((await node())?.spec?.unschedulable).toBe(true);
  expect((await local('web'))?.metadata.deletionTimestamp).toBeUndefined();
  const type = {
    group: 'policy',
    version: 'v1',
    kind: 'PodDisruptionBudget',
    plural: 'poddisruptionbudgets',
    namespaced: true,
  };
  await world.consumer.api.delete(type, { namespace: 'demo', name: 'web-budget' });
  await eventually('drained', async () => (await world.consumer.api.list(virtualNodes)).length === 0);
});
