/** What each kind of object becomes at a provider. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ReflectedWrites } from '#agent/testing/reflected-writes.ts';
import { configMaps, coreEvents, ingresses, pods, secrets, services } from '#shared/domain/core-kinds.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import {
  boundPod,
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
  await createVirtualNode(world, 'vn1', {
    ingressClasses: [{ ingressClassName: 'other' }, { ingressClassName: 'edge', default: true }],
    loadBalancerClasses: [{ loadBalancerClassName: 'example.com/lb' }],
    offloadingPatch: { labelsNotReflected: ['secret-label'], annotationsNotReflected: ['secret-note'] },
  });
  await mapNamespaces(world, ['demo', 'default']);
}, 900_000);
afterAll(async () => {
  await agent?.stop();
  await world?.stop();
});

const ours = { 'offloading.liqo.io/origin': 'cons', 'offloading.liqo.io/destination': 'prov' };
const port = { name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' };
const encoded = (text: string): string => Buffer.from(text).toString('base64');

test('B022, B084: a Service is reflected with an address of the provider, without the keys that are kept here', async () => {
  const labels = { app: 'web', 'secret-label': 'x' };
  const annotations = { note: 'n', 'secret-note': 'x' };
  await sides.create(services, {
    metadata: { name: 'web', labels, annotations },
    spec: { selector: { app: 'web' }, ports: [port] },
  });
  const there = await sides.arrived(services, 'web');
  expect(there.metadata.labels).toEqual({ app: 'web', ...ours });
  expect(there.metadata.annotations).toMatchObject({ note: 'n' });
  expect(there.metadata.annotations).not.toHaveProperty('secret-note');
  expect(there.spec).toMatchObject({ selector: { app: 'web' }, ports: [port], type: 'ClusterIP' });
  expect(there.spec?.clusterIP).toMatch(/^10\.96\./);
  await sides.patch(services, 'web', {
    metadata: { labels: { app: null, tier: 'front' } },
    spec: { selector: { app: null, tier: 'front' } },
  });
  const changed = await sides.arrived(services, 'web', ({ metadata }) => metadata.labels?.tier === 'front');
  expect(changed.metadata.labels).not.toHaveProperty('app');
  expect(changed.spec?.selector).toEqual({ tier: 'front' });
  expect(changed.spec?.clusterIP).toBe(there.spec?.clusterIP);
});

test("B095: a node port is the provider's choice, unless it is forced", async () => {
  const spec = { type: 'NodePort', selector: { app: 'a' }, ports: [{ ...port, nodePort: 30_777 }] };
  const force = { 'liqo.io/force-remote-node-port': 'true' };
  await sides.createThere(services, { metadata: { name: 'taken' }, spec });
  await sides.create(services, { metadata: { name: 'free' }, spec });
  expect((await sides.arrived(services, 'free')).spec?.ports?.[0]?.nodePort).not.toBe(30_777);
  await sides.create(services, {
    metadata: { name: 'forced', annotations: force },
    spec: { ...spec, ports: [{ ...port, nodePort: 30_778 }] },
  });
  expect((await sides.arrived(services, 'forced')).spec?.ports?.[0]?.nodePort).toBe(30_778);
  const uid = (await sides.there(services, 'free'))?.metadata.uid;
  await sides.patch(services, 'free', { metadata: { annotations: force } });
  expect((await sides.said('free', 'FailedReflection')).message).toContain('30777');
  // It would be refused when it is new, too, so what serves goes on.
  expect((await sides.there(services, 'free'))?.metadata.uid).toBe(uid);
});

test('B096: a headless Service is headless there, and follows when it is recreated with an address', async () => {
  await sides.create(services, {
    metadata: { name: 'head' },
    spec: { clusterIP: 'None', selector: { app: 'h' }, ports: [port] },
  });
  expect((await sides.arrived(services, 'head')).spec?.clusterIP).toBe('None');
  await sides.remove(services, 'head');
  await sides.create(services, { metadata: { name: 'head' }, spec: { selector: { app: 'h' }, ports: [port] } });
  await sides.arrived(services, 'head', ({ spec }) => spec?.clusterIP !== 'None');
});

test("B097: a load balancer is of the provider's class", async () => {
  await sides.create(services, {
    metadata: { name: 'lb' },
    spec: { type: 'LoadBalancer', loadBalancerClass: 'mine/lb', selector: { a: 'b' }, ports: [port] },
  });
  expect((await sides.arrived(services, 'lb')).spec?.loadBalancerClass).toBe('example.com/lb');
});

test('B097: a load balancer follows the classes of the provider, also when the last one goes, which no API server lets it do in place', async () => {
  const classes = (...names: string[]) =>
    world.consumer.api.mergePatch(
      virtualNodes,
      { namespace: tenantNamespace, name: 'vn1' },
      { spec: { loadBalancerClasses: names.map((loadBalancerClassName) => ({ loadBalancerClassName })) } },
    );
  await classes();
  const without = await sides.arrived(services, 'lb', ({ spec }) => spec?.loadBalancerClass === undefined);
  expect(without.spec).toMatchObject({ type: 'LoadBalancer', selector: { a: 'b' } });
  expect(without.metadata.labels).toMatchObject(ours);
  await classes('example.com/new');
  await sides.arrived(services, 'lb', ({ spec }) => spec?.loadBalancerClass === 'example.com/new');
  await classes('example.com/lb');
  await sides.arrived(services, 'lb', ({ spec }) => spec?.loadBalancerClass === 'example.com/lb');
});

test('B026: an Ingress keeps its rules and takes the class of the provider', async () => {
  const rules = [
    {
      host: 'a.example',
      http: {
        paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { name: 'http' } } } }],
      },
    },
  ];
  const annotations = { 'kubernetes.io/ingress.class': 'nginx', keep: 'this' };
  await sides.create(ingresses, {
    metadata: { name: 'site', annotations },
    spec: { rules, tls: [{ hosts: ['a.example'], secretName: 't' }] },
  });
  const there = await sides.arrived(ingresses, 'site');
  expect(there.spec).toEqual({ ingressClassName: 'edge', rules, tls: [{ hosts: ['a.example'], secretName: 't' }] });
  expect(there.metadata.annotations).not.toHaveProperty('kubernetes.io/ingress.class');
  expect(there.metadata.annotations).toMatchObject({ keep: 'this' });
});

test('B023: ConfigMaps and Secrets appear, follow and disappear, key by key', async () => {
  await sides.create(configMaps, { metadata: { name: 'conf' }, data: { a: '1', b: '2' } });
  await sides.create(secrets, { metadata: { name: 'pass' }, data: { a: encoded('1'), b: encoded('2') } });
  expect((await sides.arrived(configMaps, 'conf')).data).toEqual({ a: '1', b: '2' });
  expect((await sides.arrived(secrets, 'pass')).data).toEqual({ a: encoded('1'), b: encoded('2') });
  await sides.patch(configMaps, 'conf', { data: { a: '3', b: null } });
  await sides.patch(secrets, 'pass', { data: { a: encoded('3'), b: null } });
  expect((await sides.arrived(configMaps, 'conf', ({ data }) => data?.a === '3')).data).toEqual({ a: '3' });
  expect((await sides.arrived(secrets, 'pass', ({ data }) => data?.a === encoded('3'))).data).toEqual({
    a: encoded('3'),
  });
  await sides.remove(configMaps, 'conf');
  await sides.remove(secrets, 'pass');
  await sides.gone(configMaps, 'conf');
  await sides.gone(secrets, 'pass');
});

test('B100: binary data, types and immutability are kept, and what cannot be changed is replaced', async () => {
  await sides.create(configMaps, {
    metadata: { name: 'bin' },
    binaryData: { x: encoded('\u0000\u0001') },
    immutable: true,
  });
  await sides.create(secrets, {
    metadata: { name: 'fix' },
    type: 'kubernetes.io/basic-auth',
    data: { username: encoded('u') },
    immutable: true,
  });
  expect(await sides.arrived(configMaps, 'bin')).toMatchObject({
    binaryData: { x: encoded('\u0000\u0001') },
    immutable: true,
  });
  const first = await sides.arrived(secrets, 'fix');
  expect(first).toMatchObject({ type: 'kubernetes.io/basic-auth', immutable: true, data: { username: encoded('u') } });
  await sides.remove(configMaps, 'bin');
  await sides.create(configMaps, { metadata: { name: 'bin' }, data: { y: 'changed' } });
  expect((await sides.arrived(configMaps, 'bin', ({ data }) => data?.y === 'changed')).immutable).toBeUndefined();
  await sides.remove(secrets, 'fix');
  await sides.create(secrets, { metadata: { name: 'fix' }, data: { z: encoded('z') } });
  await sides.arrived(secrets, 'fix', ({ type, data }) => type === 'Opaque' && data?.z === encoded('z'));
});

test('the copy that kubectl keeps of a Secret stays here', async () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"a":"c2VjcmV0"}}' };
  await sides.create(secrets, { metadata: { name: 'applied', annotations }, data: { a: encoded('secret') } });
  expect(Object.keys((await sides.arrived(secrets, 'applied')).metadata.annotations ?? {})).toEqual([
    'isthmus.dev/reflected',
  ]);
});

test('B090, B093: the root CA goes under its own name', async () => {
  const here = await sides.here(configMaps, 'kube-root-ca.crt');
  expect((await sides.arrived(configMaps, 'kube-root-ca.crt.cons')).data).toEqual(here?.data);
  expect((await sides.there(configMaps, 'kube-root-ca.crt'))?.metadata.labels ?? {}).not.toMatchObject(ours);
});

test('B098, B099: what is of one cluster only is not reflected: its API server, tokens of its accounts', async () => {
  const annotations = { 'kubernetes.io/service-account.name': 'default' };
  await sides.create(secrets, {
    metadata: { name: 'legacy', annotations },
    type: 'kubernetes.io/service-account-token',
  });
  await sides.create(secrets, { metadata: { name: 'after' }, data: {} });
  await sides.arrived(secrets, 'after');
  expect(await sides.there(secrets, 'legacy')).toBeUndefined();
  const { api } = world.consumer;
  await api.create(services, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'default', name: 'other' },
    spec: { ports: [port] },
  } as never);
  await eventually('another Service of default', () =>
    world.provider.api.get(services, { namespace: 'default-cons', name: 'other' }),
  );
  expect(await world.provider.api.get(services, { namespace: 'default-cons', name: 'kubernetes' })).toBeUndefined();
  expect(await world.provider.api.list(shadowEndpointSlices, { namespace: 'default-cons' })).toEqual([]);
});

test('B029: events about the remote pod are events of the local one, and their count goes on', async () => {
  const { api } = world.consumer;
  const local = await api.create(pods, boundPod('demo', 'talker', 'vn1'));
  const remote = await sides.arrived(pods, 'talker');
  const event = {
    metadata: { name: 'talker.1' },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace: 'demo-cons', name: 'talker', uid: remote.metadata.uid },
    reason: 'BackOff',
    message: 'pulling',
    type: 'Warning',
    count: 1,
    source: { component: 'kubelet', host: 'worker' },
  };
  await sides.createThere(coreEvents, event);
  const copy = await eventually('the copy', () => sides.here(coreEvents, 'talker.1'));
  expect(copy).toMatchObject({
    reason: 'BackOff',
    message: 'pulling',
    type: 'Warning',
    involvedObject: { namespace: 'demo', name: 'talker', uid: local.metadata.uid },
    source: { component: 'kubelet (remote)' },
  });
  await world.provider.api.mergePatch(coreEvents, { namespace: 'demo-cons', name: 'talker.1' }, { count: 7 });
  await eventually('the count', async () => (await sides.here(coreEvents, 'talker.1'))?.count === 7);
  await sides.createThere(coreEvents, {
    ...event,
    metadata: { name: 'stranger.1' },
    involvedObject: { ...event.involvedObject, name: 'stranger' },
  });
  await world.provider.api.delete(coreEvents, { namespace: 'demo-cons', name: 'talker.1' });
  await eventually('the copy gone', async () => (await sides.here(coreEvents, 'talker.1')) === undefined);
  expect(await sides.here(coreEvents, 'stranger.1')).toBeUndefined();
});

test('a kind that the PeeringPolicy of this cluster keeps here is taken back from the provider, and sent again once the policy lets it', async () => {
  await sides.create(configMaps, { metadata: { name: 'kept' } });
  await sides.create(secrets, { metadata: { name: 'goes' } });
  await sides.arrived(configMaps, 'kept');
  await sides.arrived(secrets, 'goes');
  // The policy of these clusters, which says which ranges need no link.
  const reflects = (kinds: readonly string[] | null) =>
    world.consumer.api.mergePatch(peeringPolicies, { name: 'one-network' }, { spec: { reflectedKinds: kinds } });
  await reflects(['secret', 'service']);
  await sides.gone(configMaps, 'kept');
  await sides.create(configMaps, { metadata: { name: 'later' } });
  await sides.create(secrets, { metadata: { name: 'later' } });
  await sides.arrived(secrets, 'later');
  expect(await sides.there(configMaps, 'later')).toBeUndefined();
  expect(await sides.there(secrets, 'goes')).toBeDefined();
  await reflects(null);
  await sides.arrived(configMaps, 'kept');
  await sides.arrived(configMaps, 'later');
});

test('B112: nothing is written or said about what has not changed, however often everything is looked at', async () => {
  await agent.stop();
  agent = startConsumer(world, { connectPeer: writes.connect, reflectionResyncMs: 100 });
  // What the provider refuses is tried again: a node port that is taken.
  await sides.remove(services, 'free');
  await sides.gone(services, 'free');
  await sides.create(configMaps, { metadata: { name: 'restarted' } });
  await sides.arrived(configMaps, 'restarted');
  // What was on its way, such as events, which are written in bundles, has some time to end; what is written at each look, ten times a second, never does.
  await eventually('three seconds without a write', async () => {
    const written = await writes.within(3_000, world);
    if (written.length > 0) throw new Error(JSON.stringify(written));
    return true;
  });
});
