/** From Configurations, IPs and Nodes to granted ranges and addresses on a real API server, with restarts anywhere between. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { events, namespaces, nodes, pods, services } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type KubeObject, type Pod, type ResourceType } from '#shared/domain/kube-object.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  type GatewayClusters,
  namespace,
  nodeStatus,
  peer,
  peerLabels,
  startGatewayClusters,
} from '#test/harness/gateway-clusters.ts';

const { configurations, internalFabrics, internalNodes, ips, networks } = networkKinds;
let world: GatewayClusters;

const create = (type: ResourceType, name: string, spec: object, where = 'liqo', metadata: object = {}) =>
  world.cluster.api.create(type, {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { name, namespace: where, ...metadata },
    spec,
  } as KubeObject);
const local = (name: string, type: string, cidr: string, labels: object = {}, spec: object = {}) =>
  create(networks, name, { cidr, ...spec }, 'liqo', {
    labels: { 'ipam.liqo.io/network-type': type, ...labels },
    annotations: { 'liqo.io/preinstalled': 'true' },
  });
const exact = { 'ipam.liqo.io/network-not-remapped': 'true', 'ipam.liqo.io/network-shared': 'true' };
const configure = (pod: string[], external: string[]) =>
  create(configurations, peer, { remote: { cidr: { pod, external } } }, namespace, { labels: peerLabels });
const edit = (cidr: object) =>
  world.cluster.api.mergePatch(configurations, { namespace, name: peer }, { spec: { remote: { cidr } } });
const because = (reason: string): Promise<Configuration> =>
  eventually(`reason ${reason}`, async () => {
    const found = await world.cluster.api.get(configurations, { namespace, name: peer });
    const [condition] = found?.status?.conditions ?? [];
    if (condition?.reason !== reason || condition.observedGeneration !== found?.metadata.generation)
      throw new Error(JSON.stringify(found?.status));
    return found;
  });
async function gone(): Promise<void> {
  await world.cluster.api.delete(configurations, { namespace, name: peer });
  await eventually('nothing left of it', async () => {
    const left = (
      await Promise.all([networks, ips].map((type) => world.cluster.api.list(type as ResourceType, { namespace })))
    ).flat();
    if (left.length > 0) throw new Error(left.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join());
    return true;
  });
}

beforeAll(async () => {
  world = await startGatewayClusters();
  await local('pod-cidr', 'pod-cidr', '10.200.0.0/16', exact);
  await local('service-cidr', 'service-cidr', '10.96.0.0/12', exact);
  await local('external-cidr', 'external-cidr', '10.70.0.0/16', {}, { preAllocated: 1 });
  await local('internal-cidr', 'internal-cidr', '10.80.0.0/16');
  world.startAgent();
}, 300_000);
afterAll(async () => await world?.stop());

test('a peer with our own ranges is known by others, which its Configuration lists in the same order, and all goes with it', async () => {
  await configure(['10.200.0.0/16', '10.210.0.0/16'], ['10.70.0.0/16']);
  const done = await because('NetworkCIDRsConfigured');
  const { pod = [], external = [] } = done.status?.remote?.cidr ?? {};
  expect(pod[0]).not.toBe('10.200.0.0/16');
  expect(pod[1]).toBe('10.210.0.0/16');
  expect(external[0]).not.toBe('10.70.0.0/16');
  expect(new Set([...pod, ...external]).size).toBe(3);
  expect(done.spec.local).toEqual({ cidr: { pod: ['10.200.0.0/16'], external: ['10.70.0.0/16'] } });
  const child = await world.cluster.api.get(networks, { namespace, name: 'milan-pod-10-200-0-0-16' });
  expect(child?.metadata.labels).toMatchObject({ ...peerLabels, 'configuration.liqo.io/cidr-type': 'pod' });
  const unknown = await eventually('the unknown source', async () => {
    const one = await world.cluster.api.get(ips, { namespace, name: 'milan-unknown-source' });
    return one?.status?.ip === undefined ? undefined : one;
  });
  expect(unknown.spec.ip).toBe(external[0]?.split('/')[0]);
  expect(unknown.status).toMatchObject({ cidr: '10.70.0.0/16' });
  expect(unknown.metadata.labels).toMatchObject({ 'ipam.liqo.io/network-name': 'external-cidr' });

  await edit({ pod: ['10.211.0.0/16', '10.210.0.0/16'] });
  const edited = await because('NetworkCIDRsConfigured');
  expect(edited.status?.remote?.cidr.pod).toEqual(['10.211.0.0/16', '10.210.0.0/16']);
  await gone();
});

test.each([
  ['a public range', '8.8.0.0/16', 'RangeRefused', 'spec.remote.cidr.pod[0] is 8.8.0.0/16'],
  ['a range too large', '10.0.0.0/7', 'RangeRefused', '8 to 32'],
  ['a range that nothing is left for', '10.0.0.0/8', 'PoolExhausted', '10.0.0.0/8, 192.168.0.0/16, 172.16.0.0/12'],
])(
  '%s is refused by a condition that names it, and another one is taken at once',
  async (_what, cidr, reason, says) => {
    await configure([cidr], []);
    const refused = await because(reason);
    expect(refused.status?.conditions?.[0]?.message).toContain(says);
    await edit({ pod: ['10.220.0.0/16'] });
    const done = await because('NetworkCIDRsConfigured');
    expect(done.status?.remote?.cidr.pod).toEqual(['10.220.0.0/16']);
    await gone();
  },
);

test('every node has an overlay address and an address for peers, until it goes', async () => {
  const of = async (name: string) => {
    const [node, ip] = await Promise.all([
      world.cluster.api.get(internalNodes, { name }),
      world.cluster.api.get(ips, { namespace: 'liqo', name: `node-${name}` }),
    ]);
    return node && ip?.status?.ip
      ? { overlay: node.spec.interface.node.ip, real: ip.spec.ip, exposed: ip.status.ip }
      : undefined;
  };
  const [one, two] = [await eventually('n1', () => of('n1')), await eventually('n2', () => of('n2'))];
  expect(one.real).toBe(one.overlay);
  expect(one.overlay).toMatch(/^10\.80\./);
  expect(new Set([one.overlay, two.overlay, one.exposed, two.exposed]).size).toBe(4);
  await world.stopAgent();
  await world.cluster.api.create(nodes, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n3' },
    status: nodeStatus('n3', '192.0.2.13'),
  } as never);
  world.startAgent();
  const three = await eventually('n3', () => of('n3'));
  expect([one.overlay, two.overlay]).not.toContain(three.overlay);
  expect(await of('n1')).toEqual(one);
  await world.cluster.api.delete(nodes, { name: 'n3' });
  await eventually('gone', async () => {
    const [node, ip] = await Promise.all([
      world.cluster.api.get(internalNodes, { name: 'n3' }),
      world.cluster.api.get(ips, { namespace: 'liqo', name: 'node-n3' }),
    ]);
    return node === undefined && ip === undefined;
  });
});

test('a host is published under an address of ours, as a Service where it asks for one', async () => {
  const ports = [{ name: 'db', port: 5432, protocol: 'TCP' }];
  await create(ips, 'db', { ip: '172.20.0.9', masquerade: true, serviceTemplate: { spec: { ports } } });
  const ip = await eventually('its address', async () => {
    const found = await world.cluster.api.get(ips, { namespace: 'liqo', name: 'db' });
    return found?.status?.ip ? found : undefined;
  });
  expect(ip.status).toMatchObject({ ip: expect.stringMatching(/^10\.70\./), cidr: '10.70.0.0/16' });
  expect(ip.status?.ip).not.toBe('10.70.0.0');
  expect(ip.spec.masquerade).toBe(true);
  const service = await eventually('its Service', () =>
    world.cluster.api.get(services, { namespace: 'liqo', name: 'db' }),
  );
  expect(service.spec?.selector).toBeUndefined();
  await world.cluster.api.delete(ips, { namespace: 'liqo', name: 'db' });
  await eventually('gone', async () => !(await world.cluster.api.get(services, { namespace: 'liqo', name: 'db' })));
});

test('many objects made while the controller is stopped and started again get one address each, and keep it', async () => {
  const names = Array.from({ length: 40 }, (_, i) => `host-${i}`);
  for (const [i, name] of names.entries()) {
    await create(ips, name, { ip: `172.21.0.${i}` });
    if (i % 10 === 5) {
      await world.stopAgent();
      world.startAgent();
    }
  }
  const granted = async () => {
    const all = (await world.cluster.api.list(ips)).flatMap(({ status }) => status?.ip ?? []);
    return all.length >= names.length ? all.sort() : undefined;
  };
  const before = await eventually('all', async () => {
    const all = (await world.cluster.api.list(ips)).filter(({ metadata }) => metadata.name.startsWith('host-'));
    return all.every(({ status }) => status?.ip) ? granted() : undefined;
  });
  expect(new Set(before).size).toBe(before.length);
  await world.stopAgent();
  world.startAgent();
  await create(ips, 'late', { ip: '172.21.1.1' });
  const late = await eventually(
    'the late one',
    async () => (await world.cluster.api.get(ips, { namespace: 'liqo', name: 'late' }))?.status?.ip,
  );
  expect(before).not.toContain(late);
});

test('pods at two peers have addresses by which each peer reaches those at the other, for as long as there are two', async () => {
  const { api } = world.cluster;
  const turin = { namespace: 'liqo-tenant-turin', name: 'turin' };
  const link = async (of: typeof turin, pod: string, external: string) => {
    const labels = { 'liqo.io/remote-cluster-id': of.name };
    const spec = { remote: { cidr: { pod: [pod], external: [external] } } };
    await create(configurations, of.name, spec, of.namespace, { labels });
    return eventually(`what pods at ${of.name} are called`, async () => {
      const found = await api.get(configurations, of);
      return found?.status?.remote?.cidr.pod[0]?.replace(/0\.0\/16$/, '');
    });
  };
  const run = async (name: string, ip: string): Promise<void> => {
    const metadata = { name, namespace: 'default', labels: { 'liqo.io/shadowPod': 'true' } };
    const spec = { nodeName: 'n1', automountServiceAccountToken: false, containers: [{ name: 'c', image: 'x' }] };
    await eventually('a pod', () => api.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec } as Pod));
    const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }] };
    await api.mergePatch(pods, { namespace: 'default', name }, { status }, { subresource: 'status' });
  };
  const exposed = (name: string) => api.get(ips, { namespace: 'default', name });
  const granted = (name: string) =>
    eventually(`the address of ${name}`, async () => {
      const found = await exposed(name);
      return found?.status?.ip === undefined ? undefined : { at: found.spec.ip, as: found.status.ip };
    });
  const gonePod = async (name: string) =>
    eventually(`IP ${name} is gone`, async () => (await exposed(name)) === undefined);

  const atMilan = await link({ namespace, name: peer }, '10.200.0.0/16', '10.70.0.0/16');
  await run('alone', `${atMilan}1.5`);
  const labels = { 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-id': turin.name };
  const space = { name: turin.namespace, labels };
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: space });
  const atTurin = await link(turin, '10.200.0.0/16', '10.70.0.0/16');
  expect(atTurin).not.toBe(atMilan);
  await run('web', `${atTurin}1.5`);
  await run('of-node', '192.0.2.99');
  const [alone, web] = [await granted('alone'), await granted('web')];
  expect([alone.at, web.at]).toEqual([`${atMilan}1.5`, `${atTurin}1.5`]);
  expect([alone.as, web.as]).toEqual([expect.stringMatching(/^10\.70\./), expect.stringMatching(/^10\.70\./)]);
  expect(alone.as).not.toBe(web.as);
  expect(await exposed('of-node')).toBeUndefined();

  await world.stopAgent();
  await api.delete(pods, { namespace: 'default', name: 'web' }, { gracePeriodSeconds: 0 });
  await run('web', `${atTurin}1.6`);
  world.startAgent();
  await eventually('the IP of the next pod of that name', async () => (await granted('web')).at === `${atTurin}1.6`);
  expect(await granted('alone')).toEqual(alone);

  await api.delete(pods, { namespace: 'default', name: 'web' }, { gracePeriodSeconds: 0 });
  await gonePod('web');
  await api.delete(configurations, turin);
  await gonePod('alone');
  for (const name of ['alone', 'of-node'])
    await api.delete(pods, { namespace: 'default', name }, { gracePeriodSeconds: 0 });
  await gone();
});

test('a gateway gets its end of the overlay once a pod is active and the ranges are granted', async () => {
  await world.createTemplate('server');
  await world.createServer({ mtu: 1400 });
  await world.createKey();
  await world.runPod('p1', 'n1', '10.200.1.5');
  await world.reason('Ready');
  expect(await world.cluster.api.get(internalFabrics, { namespace, name: peer })).toBeUndefined();
  await configure(['10.200.0.0/16'], ['10.71.0.0/16']);
  const found = () => world.cluster.api.get(internalFabrics, { namespace, name: peer });
  const fabric = await eventually('the fabric', found);
  const views = (await because('NetworkCIDRsConfigured')).status?.remote?.cidr;
  expect(fabric.spec).toMatchObject({
    mtu: 1400,
    gatewayIP: '10.200.1.5',
    remoteCIDRs: [...(views?.pod ?? []), ...(views?.external ?? [])],
    interface: { gateway: { ip: expect.stringMatching(/^10\.80\./) } },
  });
  expect(Number(fabric.metadata.annotations?.['networking.isthmus.dev/vni'])).toBeGreaterThan(0);
  await world.child(networkKinds.connections);
  await world.cluster.api.mergePatch(
    networkKinds.connections,
    { namespace, name: 'gw-milan' },
    { status: { value: 'Connected', mtu: 1320 } },
    { subresource: 'status' },
  );
  await eventually('the size of the path', async () => (await found())?.spec.mtu === 1320);
  await world.stopAgent();
  world.startAgent();
  await world.cluster.api.mergePatch(
    networkKinds.connections,
    { namespace, name: 'gw-milan' },
    { status: { mtu: 1310 } },
    { subresource: 'status' },
  );
  const later = await eventually('a pass', async () => {
    const one = await found();
    return one?.spec.mtu === 1310 ? one : undefined;
  });
  expect(later.spec.interface).toEqual(fabric.spec.interface);
  expect(later.metadata.annotations).toMatchObject(fabric.metadata.annotations ?? {});
  await world.cluster.api.delete(networkKinds.gatewayServers, { namespace, name: peer });
  await eventually('gone with its gateway', async () => (await found()) === undefined);
});

test('a PeeringPolicy that switches links off takes ranges and gateway back, regardless of the writer, until it allows them', async () => {
  await world.createTemplate('server');
  await world.createServer();
  await gone();
  await configure(['10.200.0.0/16'], ['10.71.0.0/16']);
  await because('NetworkCIDRsConfigured');
  const rendered = () => world.cluster.api.get(networkKinds.wgGatewayServers, { namespace, name: peer });
  await eventually('the gateway', rendered);
  const narrow = { name: 'narrow' };
  const spec = { tenants: ['*'], asConsumer: { enabled: true, autoAccept: true, peers: [peer] }, reflectedKinds: [] };
  await world.cluster.api.create(peeringPolicies, {
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'PeeringPolicy',
    metadata: narrow,
    spec: { ...spec, network: { enabled: false, remoteCidrs: [] } },
  });
  const refused = await because('PolicyRefused');
  expect(refused.status?.conditions?.find(({ reason }) => reason === 'PolicyRefused')?.message).toContain(
    'PeeringPolicy narrow has spec.network.enabled false',
  );
  await world.reason('PolicyRefused');
  await eventually('no gateway and no ranges', async () => {
    const [gateway, granted] = await Promise.all([rendered(), world.cluster.api.list(networks, { namespace })]);
    return gateway === undefined && granted.length === 0;
  });
  const within = { spec: { network: { enabled: true, remoteCidrs: ['10.0.0.0/8'] } } };
  await world.cluster.api.mergePatch(peeringPolicies, narrow, within);
  await because('NetworkCIDRsConfigured');
  await eventually('the gateway again', rendered);
  const elsewhere = { spec: { network: { remoteCidrs: ['10.200.0.0/16'] } } };
  await world.cluster.api.mergePatch(peeringPolicies, narrow, elsewhere);
  await because('PolicyRefused');
  await world.cluster.api.delete(peeringPolicies, narrow);
  await because('NetworkCIDRsConfigured');
  await world.cluster.api.delete(networkKinds.gatewayServers, { namespace, name: peer });
});

test('a Network whose range is taken names the holder, and gets the range when the holder goes', async () => {
  const labels = { 'ipam.liqo.io/network-not-remapped': 'true' };
  const get = (name: string) => world.cluster.api.get(networks, { namespace: 'liqo', name });
  await create(networks, 'first', { cidr: '10.150.0.0/16' }, 'liqo', { labels });
  await eventually('the first', async () => (await get('first'))?.status?.cidr);
  await create(networks, 'second', { cidr: '10.150.1.0/24' }, 'liqo', { labels });
  const refused = await eventually('a refusal', async () => (await get('second'))?.status?.conditions?.[0]);
  expect(refused).toMatchObject({ status: 'False', reason: 'RangeTaken' });
  expect(refused.message).toContain('Network liqo/first');
  await eventually('an Event', async () =>
    (await world.cluster.api.list(events, { namespace: 'liqo' })).some(
      ({ regarding, reason }) => (regarding as { name?: string })?.name === 'second' && reason === 'RangeTaken',
    ),
  );
  await world.cluster.api.delete(networks, { namespace: 'liqo', name: 'first' });
  await eventually('the second', async () => (await get('second'))?.status?.cidr === '10.150.1.0/24');
});
