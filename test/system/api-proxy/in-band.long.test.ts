/** A provider whose API server is closed to its consumer: the peering works through the link, streams included, and ends with nothing left. */
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { identities } from '#shared/schema/liqo/identity.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { openProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { closeDoor, turnedAway } from '../brokerless/wall.ts';
import { consumer, createStage, isRunning, patience, provider, type Stage } from '../whole-clusters/stage.ts';
import { container, pod } from '../whole-clusters/workloads.ts';

const place = { root: repositoryRoot, dir: process.env.ISTHMUS_BED ?? path.join(repositoryRoot, '.build', 'in-band') };
const patient = { ...patience, withinMs: 240_000 };
vi.setConfig({ testTimeout: 400_000, hookTimeout: 180_000 });
let stage: Stage;

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  await removeProductClusters(place);
  const clusters = await openProductClusters({
    ...place,
    clusters: [consumer, { name: provider, nodes: 2 }],
    brokerPort: 7561,
  });
  await Promise.all([clusters.join(consumer), clusters.join(provider)]);
  stage = await createStage(clusters);
  await closeDoor(stage);
}, 900_000);
afterAll(async () => {
  await removeProductClusters(place);
}, 180_000);

test('the provider has an address for its proxy, which is not needed yet', async () => {
  const ip = await eventually(
    'the address',
    async () => {
      const found = await stage.api(provider).get(networkKinds.ips, { namespace: 'liqo', name: 'api-server-proxy' });
      return found?.status?.ip === undefined ? undefined : found;
    },
    patient,
  );
  expect(ip.spec.masquerade).toBe(true);
});

test('a peering in-band becomes Ready although the way to the API server is closed', async () => {
  const ask = ['peer', consumer, provider, '--cpu', '2', '--memory', '2Gi', '--pods', '20', '--in-band'];
  // The broker hears of the proxy with the next facts.
  await eventually(
    'the broker takes it',
    async () => {
      const { code, stderr } = await stage.world.isthmus(...ask);
      if (code !== 0) throw new Error(stderr);
      return true;
    },
    { ...patient, everyMs: 1_000 },
  );
  await eventually(
    'Ready',
    async () => {
      const peering = await stage.peering();
      if (peering?.phase !== 'Ready') throw new Error(JSON.stringify(peering?.conditions));
      return true;
    },
    { ...patient, everyMs: 500 },
  );
  const [identity] = await stage.api(consumer).list(identities);
  expect(identity?.spec.authParams.proxyURL).toMatch(/^http:\/\/10\.\d+\.\d+\.\d+:8118$/);
});

test('pods run there, with logs and exec, and not one packet asked at the closed door', async () => {
  await stage.createNamespace('abroad');
  await stage.mustOffload('abroad');
  await stage.apply(consumer, pod('abroad', 'parrot', [container(['serve', '-text', 'hello'])]));
  await stage.podThat(consumer, ['abroad', 'parrot'], 'runs', isRunning);
  const exec = await eventually(
    'exec',
    async () => {
      const line = ['-n', 'abroad', 'exec', '-i', 'parrot', '--', 'cat'];
      const ended = await stage.kubectl(consumer, line, 'from afar');
      if (ended.code !== 0) throw new Error(ended.stderr);
      return ended;
    },
    patient,
  );
  expect(exec.stdout).toBe('from afar');
  expect((await stage.kubectl(consumer, ['-n', 'abroad', 'logs', 'parrot'])).code).toBe(0);
  expect(await turnedAway(stage)).toBe(0);
  await stage.deleteNamespaces(consumer, 'abroad');
});

const knock = (host: string, port: number | string, target = 'kubernetes.default:443'): string =>
  `const s = require('net').connect(${port}, '${host}', () => s.write('CONNECT ${target} HTTP/1.1\\r\\n\\r\\n')); s.on('data', (d) => { console.log(String(d).split('\\r\\n')[0]); s.destroy(); }); s.on('error', (e) => { console.log(e.code); process.exit(1); }); s.setTimeout(10000, () => process.exit(1));`;
const node = '/usr/local/bin/node';

/** As a consumer that runs Liqo comes: from the consumer, through the link, without a token. What the proxy answers. */
async function connectWithoutToken(target?: string): Promise<string> {
  const [identity] = await stage.api(consumer).list(identities);
  const { hostname, port } = new URL(identity?.spec.authParams.proxyURL ?? '');
  const line = ['-n', 'liqo', 'exec', 'deploy/isthmus-agent', '--', node, '-e', knock(hostname, port, target)];
  return (await stage.kubectl(consumer, line)).stdout.trim();
}

/** From a pod of the provider, to the Service of the proxy. */
async function connectFromProviderPod(): Promise<string> {
  const service = ['-n', 'liqo', 'get', 'service', 'isthmus-api-server-proxy', '-o', 'jsonpath={.spec.clusterIP}'];
  const { stdout: address } = await stage.kubectl(provider, service);
  const line = ['-n', 'neighbours', 'exec', 'neighbour', '--', node, '-e', knock(address, 8118)];
  return (await stage.kubectl(provider, line)).stdout.trim();
}

async function tenantOf() {
  const [tenant] = await stage.api(provider).list(tenants);
  if (tenant === undefined) throw new Error('there is no Tenant');
  return tenant;
}
const condition = async () => (await tenantOf()).status?.conditions?.find(({ type }) => type === 'InBandToken');
async function annotate(value: string): Promise<{ code: number | null; stderr: string }> {
  const { name, namespace = '' } = (await tenantOf()).metadata;
  return stage.kubectl(provider, [
    '-n',
    namespace,
    'annotate',
    '--overwrite',
    'tenants.authentication.liqo.io',
    name,
    value,
  ]);
}
/** The node that gateways lead to for the proxy. */
async function proxyNode(): Promise<string> {
  const ip = await stage.api(provider).get(networkKinds.ips, { namespace: 'liqo', name: 'api-server-proxy' });
  return ip?.metadata.annotations?.['isthmus.dev/served-by'] ?? '';
}
const refused = 'HTTP/1.1 407 Proxy Authentication Required';
const accepted = 'HTTP/1.1 200 Connection Established';
const answers = (what: string, wanted: string) =>
  eventually(
    what,
    async () => {
      const said = await connectWithoutToken();
      if (said !== wanted) throw new Error(said);
      return true;
    },
    { ...patience, everyMs: 500 },
  );

test('a caller without a token is refused, and the Tenant of a consumer that shows tokens has no condition that is False', async () => {
  expect(await connectWithoutToken()).toBe(refused);
  expect((await tenantOf()).status?.conditions?.filter(({ status }) => status === 'False') ?? []).toEqual([]);
});

test('a Tenant lets its consumer in without a token, from its link alone, wherever the proxy runs, and takes that back', async () => {
  await stage.apply(provider, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'neighbours' },
  });
  const idle = { name: 'main', image: stage.world.image, command: [node, '-e', 'setInterval(() => {}, 1e6)'] };
  await stage.apply(provider, pod('neighbours', 'neighbour', [{ ...container([]), ...idle, args: [] }]));
  await stage.podThat(provider, ['neighbours', 'neighbour'], 'runs', isRunning);

  const key = 'isthmus.dev/in-band-without-token';
  expect((await annotate(`${key}=yes`)).stderr).toContain('is "yes": accepted is "true" or "false"');
  expect((await annotate(`${key}=true`)).code).toBe(0);
  await answers('let in', accepted);
  await eventually('the Tenant says so', async () => (await condition())?.reason === 'NotRequired', patience);
  expect(await connectWithoutToken('192.0.2.1:22')).toBe('HTTP/1.1 403 Forbidden');
  expect(await connectFromProviderPod()).toBe(refused);

  // The proxy on the one node and on the other: the gateway stays where it is.
  const first = await proxyNode();
  expect(stage.world.cluster(provider).nodes.map(({ name }) => name)).toContain(first);
  expect((await stage.kubectl(provider, ['cordon', first])).code).toBe(0);
  const agents = ['-l', 'app.kubernetes.io/name=controller-manager', '--field-selector', `spec.nodeName=${first}`];
  const removed = await stage.kubectl(provider, ['-n', 'liqo', 'delete', 'pods', ...agents, '--wait=false']);
  expect(removed.stdout).toContain('deleted');
  await eventually('the proxy on the other node', async () => ![first, ''].includes(await proxyNode()), patient);
  expect((await stage.kubectl(provider, ['uncordon', first])).code).toBe(0);
  await answers('let in on the other node', accepted);
  expect(await connectFromProviderPod()).toBe(refused);

  expect((await annotate(`${key}-`)).code).toBe(0);
  await answers('refused again', refused);
  await eventually('nothing said any more', async () => (await condition()) === undefined, patience);
  await stage.deleteNamespaces(provider, 'neighbours');
});

test('unpeering closes the way, too', async () => {
  await eventually('Ready to the end', async () => (await stage.peering())?.phase === 'Ready', patience);
  await stage.world.mustIsthmus('unpeer', consumer, provider, '--wait');
  await eventually(
    'no listener',
    async () => {
      const slices = await stage.kubectl(provider, ['-n', 'liqo', 'get', 'endpointslices', '-o', 'name']);
      if (slices.code !== 0) throw new Error(slices.stderr);
      if (slices.stdout.includes('isthmus-api-server-proxy')) throw new Error(slices.stdout);
      return true;
    },
    patient,
  );
});
