import { afterAll, beforeAll, expect, test } from 'vitest';
import { coreEvents, type EndpointSlice, endpointSlices, nodes, services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Node, ResourceType } from '#shared/domain/kube-object.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { type ShadowEndpointSlice, shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';
import { eventually } from '#test/harness/eventually.ts';
import { acceptGuests } from '#test/harness/guest-policy.ts';
import { inOrder } from '#test/harness/in-order.ts';
import {
  createVirtualNode,
  mapNamespaces,
  type OffloadingClusters,
  tenantNamespace,
} from '#test/harness/offloading-clusters.ts';
import {
  type Running,
  sidesOf,
  startConsumer,
  startProvider,
  startReflectionClusters,
} from '#test/harness/reflection-clusters.ts';

let world: OffloadingClusters;
let consumer: Running;
let provider: Running;
let sides: ReturnType<typeof sidesOf>;

interface Ranges {
  readonly pod: readonly string[];
  readonly external: readonly string[];
}
const ranges = (pod: string, external: string): Ranges => ({ pod: [pod], external: [external] });

/** What one cluster knows of the ranges of a peer, and how it calls them. */
async function configure(at: 'consumer' | 'provider', peer: string, real: Ranges, view: Ranges): Promise<void> {
  const namespace = at === 'consumer' ? tenantNamespace : 'liqo';
  const local = { cidr: ranges('10.10.0.0/16', '10.70.0.0/16') };
  const { api } = world[at];
  await api.create(networkKinds.configurations, {
    apiVersion: 'networking.liqo.io/v1beta1',
    kind: 'Configuration',
    metadata: { name: peer, namespace, labels: { 'liqo.io/remote-cluster-id': peer } },
    spec: { local, remote: { cidr: real } },
  } as never);
  const status = { remote: { cidr: view } };
  await api.mergePatch(networkKinds.configurations, { namespace, name: peer }, { status }, { subresource: 'status' });
}

/** The link to the consumer, as the provider's summary says. */
async function linkIs(
  status: 'Established' | 'Error',
  server: 'None' | 'Established' | 'Error' = 'None',
): Promise<void> {
  const at = new Date().toISOString();
  const condition = (type: string, value: string) => ({
    type,
    status: value,
    lastTransitionTime: at,
    reason: 'Test',
    message: '',
  });
  const off = { enabled: false };
  const modules = {
    networking: { enabled: true, conditions: [condition('NetworkConnectionStatus', status)] },
    authentication: off,
    offloading: off,
  };
  const body = { status: { role: 'Consumer', modules, conditions: [condition('APIServerStatus', server)] } };
  await world.provider.api.mergePatch<ForeignCluster>(foreignClusters, { name: 'cons' }, body, {
    subresource: 'status',
  });
}

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  world = await startReflectionClusters();
  sides = sidesOf(world);
  await configure('consumer', 'prov', ranges('10.20.0.0/16', '10.71.0.0/16'), ranges('10.20.0.0/16', '10.71.0.0/16'));
  await configure('consumer', 'third', ranges('10.30.0.0/16', '10.72.0.0/16'), ranges('10.130.0.0/16', '10.72.0.0/16'));
  await configure('provider', 'cons', ranges('10.10.0.0/16', '10.70.0.0/16'), ranges('10.110.0.0/16', '10.170.0.0/16'));
  await configure('provider', 'third', ranges('10.30.0.0/16', '10.72.0.0/16'), ranges('10.230.0.0/16', '10.73.0.0/16'));
  await linkIs('Established');
  const labels = { 'liqo.io/type': 'virtual-node', 'liqo.io/remote-cluster-id': 'third' };
  await world.consumer.api.create(nodes, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'third-node', labels },
  } as Node);
  consumer = startConsumer(world);
  provider = startProvider(world);
  await createVirtualNode(world, 'vn1');
  await mapNamespaces(world, ['demo']);
  await eventually('the Node', () => world.consumer.api.get(nodes, { name: 'vn1' }));
}, 900_000);
afterAll(async () => {
  await Promise.all([consumer?.stop(), provider?.stop()]);
  await world?.stop();
});

const port = { name: 'http', port: 8080, protocol: 'TCP' };
const at = (address: string, nodeName?: string, more: object = {}) => ({
  addresses: [address],
  conditions: { ready: true, serving: true, terminating: false },
  ...(nodeName ? { nodeName } : {}),
  ...more,
});
async function service(name: string, annotations: Record<string, string> = {}): Promise<void> {
  await sides.create(services, { metadata: { name, annotations }, spec: { ports: [{ port: 80 }] } });
}
const slice = (name: string, of: string, endpoints: readonly object[], annotations: Record<string, string> = {}) =>
  sides.create(endpointSlices, {
    metadata: {
      name,
      annotations,
      labels: { 'kubernetes.io/service-name': of, 'endpointslice.kubernetes.io/managed-by': 'test' },
    },
    addressType: 'IPv4',
    endpoints,
    ports: [port],
  });
const addresses = (found: EndpointSlice): string[] => (found.endpoints ?? []).flatMap((endpoint) => endpoint.addresses);
const isReady = (found: EndpointSlice): (boolean | undefined)[] =>
  (found.endpoints ?? []).map(({ conditions }) => conditions?.ready);

test("B024, B025, B103: pods of the consumer's nodes are endpoints at the provider, in its view of them; its own are not", async () => {
  await service('web');
  const targetRef = { kind: 'Pod', name: 'a', namespace: 'demo' };
  await slice('web-1', 'web', [
    at('10.10.0.5', 'worker', { targetRef, hostname: 'a' }),
    at('10.20.0.9', 'vn1'),
    at('10.10.0.6', 'no-such-node'),
    at('10.10.0.7'),
  ]);
  const shadow = await sides.arrived(shadowEndpointSlices, 'web-1');
  expect(shadow.spec.template).toEqual({
    addressType: 'IPv4',
    endpoints: [
      {
        addresses: ['10.10.0.5'],
        conditions: { ready: true },
        nodeName: 'cons',
        hostname: 'a',
        targetRef: { ...targetRef, kind: 'RemotePod' },
      },
      { addresses: ['10.10.0.7'], conditions: { ready: true }, nodeName: 'cons' },
    ],
    ports: [port],
  });
  const made = await sides.arrived(endpointSlices, 'web-1');
  expect(addresses(made)).toEqual(['10.110.0.5', '10.110.0.7']);
  expect(made.endpoints?.[0]).toMatchObject({ nodeName: 'cons', conditions: { ready: true } });
  expect(made.metadata.labels).toMatchObject({
    'kubernetes.io/service-name': 'web',
    'endpointslice.kubernetes.io/managed-by': 'endpointslice.reflection.liqo.io',
    'liqo.io/managed-by': 'shadowendpointslice',
    'offloading.liqo.io/origin': 'cons',
  });
  expect(made.metadata.ownerReferences?.[0]).toMatchObject({
    kind: 'ShadowEndpointSlice',
    uid: shadow.metadata.uid,
    controller: true,
  });
  await sides.patch(endpointSlices, 'web-1', { endpoints: [at('10.10.0.8', 'worker')] });
  await sides.arrived(endpointSlices, 'web-1', (found) => addresses(found).join() === '10.110.0.8');
  await sides.remove(endpointSlices, 'web-1');
  await sides.gone(endpointSlices, 'web-1');
});

test('B102: an address outside of the pod range waits for its IP object, and follows it', async () => {
  await service('db');
  await slice('db-1', 'db', [at('192.168.5.5')]);
  const said = await sides.said('db-1', 'FailedReflection');
  expect(said).toMatchObject({ type: 'Warning' });
  expect(said.message).toContain('192.168.5.5');
  expect(await sides.there(shadowEndpointSlices, 'db-1')).toBeUndefined();
  await sides.create(networkKinds.ips, { metadata: { name: 'db' }, spec: { ip: '192.168.5.5' } });
  const patch = { status: { ip: '10.70.0.5', cidr: '10.70.0.0/16' } };
  await world.consumer.api.mergePatch(networkKinds.ips, { namespace: 'demo', name: 'db' }, patch, {
    subresource: 'status',
  });
  expect(addresses(await sides.arrived(endpointSlices, 'db-1'))).toEqual(['10.170.0.5']);
});

test('a pod at a third cluster waits in silence for its IP object, and is an endpoint by the address that it gives', async () => {
  await service('shop');
  await slice('shop-1', 'shop', [at('10.130.0.8', 'third-node'), at('10.10.6.1', 'worker')]);
  await sides.create(networkKinds.ips, { metadata: { name: 'shop' }, spec: { ip: '10.130.0.8' } });
  const patch = { status: { ip: '10.70.0.8', cidr: '10.70.0.0/16' } };
  await world.consumer.api.mergePatch(networkKinds.ips, { namespace: 'demo', name: 'shop' }, patch, {
    subresource: 'status',
  });
  expect(addresses(await sides.arrived(endpointSlices, 'shop-1'))).toEqual(['10.170.0.8', '10.110.6.1']);
  const warnings = (await world.consumer.api.list(coreEvents, { namespace: 'demo' })).filter(
    ({ involvedObject, type }) => involvedObject.name === 'shop-1' && type === 'Warning',
  );
  expect(warnings).toEqual([]);
});

test('B104: endpoints are ready only while the consumer can be reached', async () => {
  await service('api');
  await slice('api-1', 'api', [
    at('10.10.1.1', 'worker'),
    at('10.10.1.2', 'worker', { conditions: { ready: false } }),
    { addresses: ['10.10.1.3'] },
  ]);
  const ready = (wanted: readonly boolean[]) =>
    sides.arrived(endpointSlices, 'api-1', (found) => isReady(found).join() === wanted.join());
  await ready([true, false, true]);
  await linkIs('Error');
  await ready([false, false, false]);
  await linkIs('Established', 'Error');
  await sides.arrived(endpointSlices, 'api-1', (found) => isReady(found).every((one) => one === false));
  await linkIs('Established', 'Established');
  await ready([true, false, true]);
});

test('B094: what keeps a Service here keeps its endpoints here too, now and later', async () => {
  await service('quiet', { 'liqo.io/skip-reflection': 'true' });
  await slice('quiet-1', 'quiet', [at('10.10.2.1', 'worker')]);
  await slice('loud-1', 'quiet', [at('10.10.2.2', 'worker')], { 'liqo.io/allow-reflection': 'true' });
  await sides.arrived(shadowEndpointSlices, 'loud-1');
  expect(await sides.there(shadowEndpointSlices, 'quiet-1')).toBeUndefined();
  await sides.patch(services, 'quiet', { metadata: { annotations: { 'liqo.io/skip-reflection': null } } });
  await sides.arrived(endpointSlices, 'quiet-1');
  await sides.patch(services, 'quiet', { metadata: { annotations: { 'liqo.io/skip-reflection': 'true' } } });
  await sides.gone(endpointSlices, 'quiet-1');
});

test('B105: pods at a third cluster are reached directly where that is asked for and a policy of the provider names it', async () => {
  await service('far', { 'liqo.io/use-direct-connections': 'true' });
  await slice('far-1', 'far', [at('10.130.0.7', 'third-node'), at('10.10.3.1', 'worker')]);
  const shadow = await sides.arrived<ShadowEndpointSlice>(shadowEndpointSlices, 'far-1');
  const data = { clusterAddresses: { third: ['10.30.0.7'] } };
  expect(JSON.parse(shadow.metadata.annotations?.['liqo.io/direct-connections-data'] ?? '')).toEqual(data);
  const made = await sides.arrived(endpointSlices, 'far-1');
  expect(addresses(made)).toEqual(['10.110.3.1']);
  expect(made.metadata.annotations).not.toHaveProperty('liqo.io/direct-connections-data');
  await acceptGuests(world.provider.api, { networkPeers: ['third'] });
  await sides.arrived(endpointSlices, 'far-1', (found) => addresses(found).join() === '10.230.0.7,10.110.3.1');
  await world.provider.api.delete(peeringPolicies, { name: 'guests' });
  await sides.arrived(endpointSlices, 'far-1', (found) => addresses(found).join() === '10.110.3.1');
});

const saidThere = (name: string, about: RegExp) =>
  eventually(`a warning at the provider about ${name}`, async () =>
    (
      await world.provider.api.list(
        { group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true } as ResourceType<
          KubeObject & { message: string; involvedObject: { name: string } }
        >,
        { namespace: 'demo-cons' },
      )
    ).find((event) => event.involvedObject.name === name && about.test(event.message)),
  );

test('a consumer cannot lead traffic to addresses that are not its own, nor speak for another', async () => {
  const labels = { 'offloading.liqo.io/origin': 'cons', 'offloading.liqo.io/destination': 'other' };
  const template = {
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.20.0.1'] }, { addresses: ['10.10.4.1'] }],
    ports: [port],
  };
  await sides.createThere(shadowEndpointSlices, { metadata: { name: 'greedy', labels }, spec: { template } });
  const made = await sides.arrived(endpointSlices, 'greedy');
  expect(addresses(made)).toEqual(['10.110.4.1']);
  await saidThere('greedy', /10\.20\.0\.1.*ranges of cluster cons/);
  await sides.createThere(shadowEndpointSlices, {
    metadata: { name: 'forged', labels: { ...labels, 'offloading.liqo.io/origin': 'third' } },
    spec: { template },
  });
  await saidThere('forged', /belongs to consumer cons/);
  expect(await sides.there(endpointSlices, 'forged')).toBeUndefined();
});

test("B101, B040: a slice made here is restored when it is edited or deleted, and one of the provider's own is left alone", async () => {
  const ref = { namespace: 'demo-cons', name: 'api-1' };
  await world.provider.api.mergePatch(endpointSlices, ref, { endpoints: [at('10.1.1.1')] });
  await sides.arrived(endpointSlices, 'api-1', (found) => addresses(found)[0] === '10.110.1.1');
  await world.provider.api.delete(endpointSlices, ref);
  await sides.arrived(endpointSlices, 'api-1');
  const own = { metadata: { name: 'mine-1', labels: { keep: 'me' } }, addressType: 'IPv4', endpoints: [], ports: [] };
  const before = await sides.createThere(endpointSlices, own);
  await slice('mine-1', 'web', [at('10.10.5.1', 'worker')]);
  await saidThere('mine-1', /left alone/);
  expect((await sides.there(endpointSlices, 'mine-1'))?.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
});
