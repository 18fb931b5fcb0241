/**
 * A malicious neighbour: a peer that announces ranges aimed at hosts of this cluster, on a real API server with the network controllers.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { contains } from '#shared/domain/cidr.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/domain/kube-object.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  type GatewayClusters,
  namespace,
  peer,
  peerLabels,
  startGatewayClusters,
} from '#test/harness/gateway-clusters.ts';

const { configurations, internalNodes, networks } = networkKinds;
/** Nothing of these may lead into a tunnel: two nodes, their resolver, their gateway and their network. */
const hosts = ['192.0.2.11', '192.0.2.12', '10.0.0.2', '192.168.7.1', '192.168.7.77'];
let world: GatewayClusters;

const create = (type: ResourceType, name: string, spec: object, where?: string, metadata: object = {}) =>
  world.cluster.api.create(type, {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { name, ...(where === undefined ? {} : { namespace: where }), ...metadata },
    spec,
  } as KubeObject);

const own = (name: string, type: string, cidr: string) =>
  create(networks, name, { cidr }, 'liqo', {
    labels: { 'ipam.liqo.io/network-type': type },
    annotations: { 'liqo.io/preinstalled': 'true' },
  });

/** What this cluster calls the ranges, in their order; with `reason` instead, why it has none. */
async function announce(pod: readonly string[], reason = 'NetworkCIDRsConfigured'): Promise<readonly string[]> {
  const ref = { namespace, name: peer };
  await create(configurations, peer, { remote: { cidr: { pod, external: [] } } }, namespace, { labels: peerLabels });
  const found = await eventually(`reason ${reason}`, async (): Promise<Configuration> => {
    const one = await world.cluster.api.get(configurations, ref);
    if (one?.status?.conditions?.[0]?.reason !== reason) throw new Error(JSON.stringify(one?.status));
    return one;
  });
  await world.cluster.api.delete(configurations, ref);
  await eventually('nothing left', async () => (await world.cluster.api.list(networks, { namespace })).length === 0);
  return found.status?.remote?.cidr.pod ?? [];
}

beforeAll(async () => {
  world = await startGatewayClusters();
  await own('pod-cidr', 'pod-cidr', '10.200.0.0/16');
  await own('service-cidr', 'service-cidr', '10.96.0.0/12');
  await own('external-cidr', 'external-cidr', '10.70.0.0/16');
  await own('internal-cidr', 'internal-cidr', '10.80.0.0/16');
  world.startAgent();
  await eventually('the InternalNodes', async () => (await world.cluster.api.list(internalNodes)).length === 2);
  // As the node process reports it; test/system/network/node shows that it does.
  await world.cluster.api.mergePatch(
    internalNodes,
    { name: 'n1' },
    {
      metadata: { annotations: { 'networking.isthmus.dev/surroundings': '192.168.7.0/24,10.0.0.2/32,192.168.7.1/32' } },
    },
  );
}, 300_000);
afterAll(async () => await world?.stop());

test.each([
  ['the resolver', '10.0.0.2/32'],
  ['the resolver and its neighbours', '10.0.0.0/24'],
  ['a node', '192.168.7.77/32'],
  ['the gateway', '192.168.7.0/30'],
  ['the network of the nodes and more', '192.168.0.0/16'],
])('a range that is aimed at %s is called otherwise here', async (_what, cidr) => {
  const [view = ''] = await announce([cidr]);
  expect(view).not.toBe(cidr);
  expect(hosts.filter((host) => contains(view, host))).toEqual([]);
});

test('a range of a sane size that nothing here has keeps its name', async () => {
  expect(await announce(['10.50.0.0/16', '172.16.9.0/24'])).toEqual(['10.50.0.0/16', '172.16.9.0/24']);
});

test('a public range is refused until a policy of this cluster names it, and a small one is moved until then', async () => {
  expect(await announce(['203.0.113.0/24'], 'RangeRefused')).toEqual([]);
  expect(await announce(['10.51.0.7/32'])).toEqual([expect.stringMatching(/^198\.18\./)]);
  const named = ['203.0.113.0/24', '10.51.0.7/32'];
  await create(peeringPolicies as ResourceType, 'named', {
    asConsumer: { peers: [peer] },
    network: { remoteCidrs: named },
  } satisfies Partial<Record<keyof PeeringPolicy['spec'], unknown>>);
  expect(await announce(named)).toEqual(named);
});
