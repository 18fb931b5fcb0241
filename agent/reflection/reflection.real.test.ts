/** Whose the objects at a provider are, and that they stay right over changes of the policy, of virtual nodes and of the leader. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ReflectedWrites } from '#agent/testing/reflected-writes.ts';
import { configMaps, ingresses, secrets, services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { vkOptionsTemplates } from '#shared/schema/liqo/vk-options-template.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import {
  createVirtualNode,
  mapNamespaces,
  type OffloadingClusters,
  tenantNamespace,
} from '#test/harness/offloading-clusters.ts';
import { type Running, sidesOf, startConsumer, startReflectionClusters } from '#test/harness/reflection-clusters.ts';

let world: OffloadingClusters;
let agent: Running;
let sides: ReturnType<typeof sidesOf>;
const writes = new ReflectedWrites();

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  world = await startReflectionClusters();
  sides = sidesOf(world);
  agent = startConsumer(world, { connectPeer: writes.connect });
  await createVirtualNode(world, 'vn1');
  await mapNamespaces(world, ['demo']);
}, 900_000);
afterAll(async () => {
  await agent?.stop();
  await world?.stop();
});

const ours = { 'offloading.liqo.io/origin': 'cons', 'offloading.liqo.io/destination': 'prov' };
const port = { name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' };
const encoded = (text: string): string => Buffer.from(text).toString('base64');

test('B091, B092: an annotation keeps an object here, or takes it back; when it says false it says nothing', async () => {
  const skip = (value: string) => ({ 'liqo.io/skip-reflection': value });
  await sides.create(services, { metadata: { name: 'stays', annotations: skip('') }, spec: { ports: [port] } });
  await sides.create(services, { metadata: { name: 'goes', annotations: skip('False') }, spec: { ports: [port] } });
  const goes = await sides.arrived(services, 'goes');
  expect(goes.metadata.labels).toMatchObject(ours);
  expect(await sides.there(services, 'stays')).toBeUndefined();
  await sides.patch(services, 'goes', { metadata: { annotations: skip('true') } });
  await sides.gone(services, 'goes');
  expect((await sides.said('goes', 'ReflectionDisabled')).type).toBe('Normal');
});

interface Conflict {
  readonly type: ResourceType;
  readonly name: string;
  readonly theirs: Record<string, unknown>;
  readonly mine: Record<string, unknown>;
  readonly local?: ResourceType;
}

const slice = { endpoints: [], ports: [], addressType: 'IPv4' };
const backend = { defaultBackend: { service: { name: 'x', port: { number: 1 } } } };

test.each<Conflict>([
  {
    type: services,
    name: 'own-service',
    theirs: { spec: { ports: [{ port: 1 }] } },
    mine: { spec: { ports: [port] } },
  },
  { type: configMaps, name: 'own-map', theirs: { data: { a: 'theirs' } }, mine: { data: { b: 'mine' } } },
  {
    type: secrets,
    name: 'own-secret',
    theirs: { data: { a: encoded('theirs') } },
    mine: { data: { b: encoded('mine') } },
  },
  {
    type: ingresses,
    name: 'own-ingress',
    theirs: { spec: backend },
    mine: { spec: { defaultBackend: { service: { name: 'y', port: { number: 2 } } } } },
  },
  {
    type: shadowEndpointSlices,
    name: 'own-slice',
    theirs: { spec: { template: slice } },
    mine: { ...slice },
    local: {
      group: 'discovery.k8s.io',
      version: 'v1',
      kind: 'EndpointSlice',
      plural: 'endpointslices',
      namespaced: true,
    },
  },
])(
  "B040: a $type.kind of the provider's own is left alone, and taken its place when it is gone",
  async ({ type, name, theirs, mine, local = type }) => {
    const labels = { 'offloading.liqo.io/origin': 'other-cluster' };
    const before = await sides.createThere(type, { metadata: { name, labels }, ...theirs });
    await sides.create(local, { metadata: { name }, ...mine });
    const said = await sides.said(name, 'FailedReflection');
    expect(said.type).toBe('Warning');
    expect(said.message).toContain(`demo-cons/${name} at cluster prov is not ours`);
    expect((await sides.there(type, name))?.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
    await sides.remove(local, name);
    await sides.create(local, { metadata: { name }, ...mine });
    await world.provider.api.delete(type, { namespace: 'demo-cons', name });
    await sides.arrived(type, name, ({ metadata }) => metadata.labels?.['offloading.liqo.io/origin'] === 'cons');
  },
);

test('B101: what is changed or deleted at the provider is restored; what others added there stays', async () => {
  await sides.create(configMaps, { metadata: { name: 'drift' }, data: { a: '1' } });
  await sides.arrived(configMaps, 'drift');
  const ref = { namespace: 'demo-cons', name: 'drift' };
  const edit = { metadata: { labels: { theirs: 'too' } }, data: { a: 'other', more: 'theirs' } };
  await world.provider.api.mergePatch(configMaps, ref, edit);
  const restored = await sides.arrived(configMaps, 'drift', ({ data }) => data?.a === '1');
  expect(restored.data?.more).toBe('theirs');
  expect(restored.metadata.labels).toMatchObject({ theirs: 'too', ...ours });
  await world.provider.api.delete(configMaps, ref);
  await sides.arrived(configMaps, 'drift', ({ metadata }) => metadata.uid !== restored.metadata.uid);
  const stripped = { metadata: { labels: { 'offloading.liqo.io/origin': null } } };
  await world.provider.api.mergePatch(configMaps, ref, stripped);
  expect((await sides.said('drift', 'FailedReflection')).message).toContain('not ours');
});

const uidOf = async (type: ResourceType<KubeObject>, name: string): Promise<string | undefined> =>
  (await sides.there(type, name))?.metadata.uid;

test('B118: two virtual nodes of one provider reflect what they share once, and the second goes on when the first is gone', async () => {
  await createVirtualNode(world, 'vn2');
  await sides.create(configMaps, { metadata: { name: 'shared' }, data: { a: '1' } });
  await sides.arrived(configMaps, 'shared');
  await sides.said('shared', 'SuccessfulReflection');
  await sides.create(configMaps, { metadata: { name: 'later' } });
  await sides.arrived(configMaps, 'later');
  expect(writes.applied.filter((name) => name === 'shared')).toEqual(['shared']);
  const first = { namespace: tenantNamespace, name: 'vn1' };
  await world.consumer.api.delete(virtualNodes, first);
  await eventually('vn1 gone', async () => (await world.consumer.api.get(virtualNodes, first)) === undefined);
  const uid = await uidOf(configMaps, 'shared');
  await sides.patch(configMaps, 'shared', { data: { a: '2' } });
  await sides.arrived(configMaps, 'shared', ({ data }) => data?.a === '2');
  expect(await uidOf(configMaps, 'shared')).toBe(uid);
});

test('B119: what was created and deleted while there was no leader is made up for, and what is right is not written', async () => {
  const before = await sides.there(configMaps, 'shared');
  await sides.create(services, { metadata: { name: 'old' }, spec: { ports: [port] } });
  await sides.arrived(services, 'old');
  await agent.stop();
  await sides.remove(services, 'old');
  await sides.create(services, { metadata: { name: 'new' }, spec: { ports: [port] } });
  agent = startConsumer(world);
  await sides.arrived(services, 'new');
  await sides.gone(services, 'old');
  expect((await sides.there(configMaps, 'shared'))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
});

test('B112: nothing is written or said about what has not changed, however often everything is looked at', async () => {
  await agent.stop();
  agent = startConsumer(world, { connectPeer: writes.connect, reflectionResyncMs: 100 });
  await sides.create(configMaps, { metadata: { name: 'restarted' } });
  await sides.arrived(configMaps, 'restarted');
  // Our events are written in bundles, at most each second.
  await systemClock.sleep(3_000);
  expect(await writes.within(3_000, world)).toEqual([]);
  await agent.stop();
  agent = startConsumer(world);
});

test('B093: with an AllowList only what is allowed is reflected, and the root CA always; a change of the policy counts at once', async () => {
  const template = {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'VkOptionsTemplate',
    metadata: { namespace: 'liqo', name: 'virtual-kubelet-default' },
    spec: {
      createNode: true,
      disableNetworkCheck: false,
      containerImage: 'none',
      metricsEnabled: false,
      annotationsNotReflected: ['by-template'],
      reflectorsConfig: { configmap: { workers: 3, type: 'AllowList' as const }, secret: { workers: 0 } },
    },
  };
  await world.consumer.api.create(vkOptionsTemplates, template);
  await sides.gone(configMaps, 'shared');
  const annotations = { 'liqo.io/allow-reflection': 'true', 'by-template': 'x' };
  await sides.create(configMaps, { metadata: { name: 'allowed', annotations }, data: { a: '1' } });
  expect((await sides.arrived(configMaps, 'allowed')).metadata.annotations).not.toHaveProperty('by-template');
  expect(await sides.there(configMaps, 'kube-root-ca.crt.cons')).toBeDefined();
  await sides.create(secrets, { metadata: { name: 'off' }, data: {} });
  await world.consumer.api.delete(vkOptionsTemplates, { namespace: 'liqo', name: 'virtual-kubelet-default' });
  await sides.arrived(configMaps, 'shared');
  await sides.arrived(secrets, 'off');
});
