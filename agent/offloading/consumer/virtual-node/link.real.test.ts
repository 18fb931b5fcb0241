/** A virtual node and the network link to its provider, on real API servers; the summary of the provider is played. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { nodes, pods } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  boundPod,
  createVirtualNode,
  mapNamespaces,
  type OffloadingClusters,
  runPod,
  startOffloadingClusters,
} from '#test/harness/offloading-clusters.ts';
import { startTcpProxy, type TcpProxy } from '#test/harness/tcp-proxy.ts';
import { createVirtualNodeController } from './controller.ts';

let world: OffloadingClusters;
let line: TcpProxy;
const stop = new AbortController();
let ended: Promise<void>;

beforeAll(async () => {
  world = await startOffloadingClusters(['demo']);
  const deps = { clock: systemClock, log: silentLog };
  const { port } = new URL(world.servers.provider.url);
  line = await startTcpProxy(Number(port));
  const connect = createConnectCluster(deps);
  ended = createVirtualNodeController({
    ...deps,
    cluster: world.consumer,
    clusterId: 'cons',
    ids: systemIds,
    podIp: '127.0.0.1',
    kubeletPortBase: 11_250,
    systemNamespace: 'liqo',
    connectPeer: (kubeconfig, signal) => connect(kubeconfig.replaceAll(`:${port}`, `:${line.port}`), signal),
  }).run(stop.signal);
}, 900_000);
afterAll(async () => {
  stop.abort();
  line?.cut();
  await ended;
  await line?.close();
  await world?.stop();
});

async function summary(enabled: boolean, connection?: 'Pending' | 'Established' | 'Error'): Promise<void> {
  const off = { enabled: false, conditions: [] };
  const conditions = connection === undefined ? [] : [{ type: 'NetworkConnectionStatus', status: connection }];
  const status = {
    role: 'Provider',
    modules: { networking: { enabled, conditions }, authentication: off, offloading: off },
  };
  await world.consumer.api.mergePatch(foreignClusters, { name: 'prov' }, { status }, { subresource: 'status' });
}

async function verdicts(): Promise<string | undefined> {
  const node = await world.consumer.api.get(nodes, { name: 'vn1' });
  return node?.status?.conditions
    ?.filter(({ type }) => type === 'Ready' || type === 'NetworkUnavailable')
    .map(({ type, status }) => `${type}=${status}`)
    .sort()
    .join(' ');
}
const reads = (wanted: string) => eventually(wanted, async () => (await verdicts()) === wanted, { everyMs: 20 });

test('the Node of a peering with a network is Ready while the link works, and nothing is said about a network that ends', async () => {
  await world.consumer.api.create(foreignClusters, {
    apiVersion: 'core.liqo.io/v1beta1',
    kind: 'ForeignCluster',
    metadata: { name: 'prov', labels: { 'liqo.io/remote-cluster-id': 'prov' } },
    spec: { clusterID: 'prov' },
  });
  await createVirtualNode(world, 'vn1');
  await summary(true, 'Pending');
  await reads('NetworkUnavailable=True Ready=False');
  await summary(true, 'Established');
  await reads('NetworkUnavailable=False Ready=True');
  await summary(true, 'Error');
  await reads('NetworkUnavailable=True Ready=False');
  await summary(false);
  await reads('Ready=True');
  expect(await verdicts()).toBe('Ready=True');
});

test('B114 while its node is not Ready an offloaded pod is marked and takes no traffic, and both end with it', async () => {
  const { api } = world.consumer;
  const web = { namespace: 'demo', name: 'web' };
  const state = async (): Promise<string> => {
    const pod = await api.get(pods, web);
    const ready = pod?.status?.conditions?.find(({ type }) => type === 'Ready');
    return `${pod?.metadata.labels?.['liqo.io/remote-unavailable'] ?? 'unmarked'} Ready=${ready?.status} ${pod?.status?.phase}`;
  };
  const shows = (wanted: string) => eventually(wanted, async () => (await state()) === wanted, { everyMs: 20 });
  await mapNamespaces(world, ['demo']);
  await summary(true, 'Established');
  await reads('NetworkUnavailable=False Ready=True');
  await api.create(pods, boundPod('demo', 'web', 'vn1'));
  await runPod(world, 'demo-cons', 'web');
  await shows('unmarked Ready=True Running');
  await summary(true, 'Error');
  await shows('true Ready=False Running');
  await summary(true, 'Established');
  await shows('unmarked Ready=True Running');
});

test('a link that falls silent together with the API server of the provider, and comes back after it, changes nothing', async () => {
  const { api } = world.consumer;
  const look = async () => {
    const [node, pod] = await Promise.all([
      api.get(nodes, { name: 'vn1' }),
      api.get(pods, { namespace: 'demo', name: 'web' }),
    ]);
    return { node: [node?.spec, node?.status], pod: [pod?.metadata, pod?.status] };
  };
  await reads('NetworkUnavailable=False Ready=True');
  const before = await look();
  line.newConnections('stall');
  line.stall();
  await summary(true, 'Error');
  // Longer than the API server is given to answer, shorter than Kubernetes waits for a heartbeat.
  await systemClock.sleep(5_000);
  expect(await look()).toEqual(before);
  line.newConnections('pass');
  line.cut();
  await systemClock.sleep(5_000);
  await summary(true, 'Established');
  await systemClock.sleep(1_000);
  expect(await look()).toEqual(before);
});

test('a link that does not come back with the API server of the provider is told 10 s after it', async () => {
  line.newConnections('stall');
  line.stall();
  await summary(true, 'Error');
  await systemClock.sleep(4_000);
  line.newConnections('pass');
  line.cut();
  await reads('NetworkUnavailable=True Ready=False');
  await summary(true, 'Established');
  await reads('NetworkUnavailable=False Ready=True');
});
