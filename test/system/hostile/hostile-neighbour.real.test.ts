/**
 * A malicious neighbour on real API servers: a peer that announces ranges aimed at hosts of this cluster, a peering user that gives such hosts to peers,
 * and a stranger in the cluster network that talks to the webhooks.
 */
import https from 'node:https';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contains } from '#shared/domain/cidr.ts';
import { clusterRoles, nodes, roleBindings, secrets } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/domain/kube-object.ts';
import { peeringUserTenantRole, tenantRoleOfPeeringUsers } from '#shared/domain/peering-user-roles.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  type GatewayClusters,
  namespace,
  peer,
  peerLabels,
  startGatewayClusters,
} from '#test/harness/gateway-clusters.ts';
import { startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';

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
      metadata: {
        annotations: { 'networking.isthmus.dev/node-networks': '192.168.7.0/24,10.0.0.2/32,192.168.7.1/32' },
      },
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

describe('with the webhooks', () => {
  let under: WebhookCluster;
  const tenant = 'liqo-tenant-cons';
  const user = ['--as=liqo-peering-user-cons', '--as-group=system:authenticated'];
  const ip = (address: string, name = 'give', spec: object = {}) => ({
    apiVersion: apiVersionOf(networkKinds.ips),
    kind: 'IP',
    metadata: { namespace: tenant, name },
    spec: { ip: address, ...spec },
  });

  beforeAll(async () => {
    under = await startWebhookCluster();
    const { api } = under.cluster;
    await api.apply(clusterRoles, tenantRoleOfPeeringUsers(), { fieldManager: 'test' });
    await api.create(roleBindings, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { namespace: tenant, name: 'peering-user' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: peeringUserTenantRole },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'liqo-peering-user-cons' }],
    });
    const status = { addresses: [{ type: 'InternalIP', address: '192.0.2.11' }] };
    await api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, status } as never);
    const service = { apiVersion: apiVersionOf(networks), kind: 'Network', spec: { cidr: '10.96.0.0/12' } };
    const labels = { 'ipam.liqo.io/network-type': 'service-cidr' };
    await api.create(networks, { ...service, metadata: { namespace: 'liqo', name: 'service-cidr', labels } });
    await until(async () =>
      expect(await under.create(ip('172.21.0.9'), ...user, '--dry-run=server')).toMatch(/created/),
    );
    await until(async () => expect(await under.create(ip('127.0.0.1'), ...user)).toMatch(/loopback/));
  }, 300_000);
  afterAll(async () => await under?.stop());

  test.each([
    ['the metadata service', '169.254.169.254'],
    ['a node', '192.0.2.11'],
    ['the API server by its Service', '10.96.0.1'],
    ['loopback', '127.0.0.1'],
  ])('a peering user cannot give %s to its peer, with or without labels that skip webhooks', async (_what, address) => {
    const refusal = /ip\.validate\.liqo\.io" denied the request.*\(forbidden\)/;
    expect(await under.create(ip(address), ...user)).toMatch(refusal);
    const skipping = ip(address);
    const labels = { 'liqo.io/webhook-skip': 'true' };
    expect(await under.create({ ...skipping, metadata: { ...skipping.metadata, labels } }, ...user)).toMatch(refusal);
  });

  test('an administrator can, and a peering user can give a host that is not of this cluster', async () => {
    expect(await under.create(ip('192.0.2.11', 'node'))).toMatch(/created/);
    expect(await under.create(ip('172.21.0.9', 'db'), ...user)).toMatch(/created/);
    const exposed = { serviceTemplate: { spec: { externalIPs: ['10.0.0.2'], ports: [{ port: 53 }] } } };
    expect(await under.create(ip('172.21.0.8', 'dns', exposed), ...user)).toMatch(/externalIPs/);
  });

  test('a stranger that reaches the port of the webhooks is heard by none of them', async () => {
    const stored = await under.cluster.api.get(secrets, { namespace: 'liqo', name: 'isthmus-webhook-certs' });
    const text = (key: string): string => Buffer.from(stored?.data?.[key] ?? '', 'base64').toString();
    const pod = {
      apiVersion: 'v1',
      kind: 'ShadowPod',
      metadata: { namespace: 'plain', name: 'false' },
      spec: { pod: {} },
    };
    const request = { uid: 'u1', operation: 'CREATE', namespace: 'plain', userInfo: { username: 'x' }, object: pod };
    const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
    const ask = (path: string): Promise<number | undefined> =>
      new Promise((resolve) => {
        const target = { host: '127.0.0.1', port: under.admission.port, ca: text('ca.crt'), agent: false };
        const asked = https.request({ ...target, path, method: 'POST' }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        asked.once('error', () => resolve(undefined));
        asked.setHeader('content-length', Buffer.byteLength(body));
        asked.end(body);
      });
    expect(await ask('/validate/shadowpods')).toBe(404);
    expect(await ask(`/${'0'.repeat(64)}/validate/shadowpods`)).toBe(404);
    // The same by the path that only this Secret and the webhook configurations have.
    expect(await ask(`/${text('path')}/validate/shadowpods`)).toBe(200);
    expect(await under.cluster.api.list(shadowPods)).toEqual([]);
  });
});
