/** A virtual node without a link to its provider, and one that goes behind the controller's back, on real API servers. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createVirtualNodeController } from '#agent/offloading/consumer/virtual-node/controller.ts';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { coreEvents, endpointSlices, namespaces, nodes, pods, services } from '#shared/domain/core-kinds.ts';
import type { Log } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
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

let world: OffloadingClusters;
const stop = new AbortController();
let ended: Promise<void>;
const errors: string[] = [];
const log: Log = {
  with: () => log,
  debug() {},
  info() {},
  warn: (message, fields) => void errors.push(`${message} ${JSON.stringify(fields)}`),
  error: (message, error) => void errors.push(`${message} ${error}`),
};
/** Called before a status of a VirtualNode is written. */
let beforeStatus: () => Promise<void> = async () => {};

const racing = (api: KubeApi): KubeApi => ({
  ...api,
  async mergePatch(type, ref, patch, options, signal) {
    if (type.plural === virtualNodes.plural && options?.subresource === 'status') await beforeStatus();
    return api.mergePatch(type, ref, patch, options, signal);
  },
});

beforeAll(async () => {
  world = await startOffloadingClusters(['demo']);
  const deps = { clock: systemClock, log };
  await world.consumer.api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'liqo' } });
  ended = createVirtualNodeController({
    ...deps,
    cluster: { ...world.consumer, api: racing(world.consumer.api) },
    clusterId: 'cons',
    ids: systemIds,
    podIp: '127.0.0.1',
    kubeletPortBase: 11_250,
    systemNamespace: 'liqo',
    connectPeer: createConnectCluster(deps),
  }).run(stop.signal);
}, 900_000);
afterAll(async () => {
  stop.abort();
  await ended;
  await world?.stop();
});

const readyNode = () =>
  eventually('a Node that is Ready', async () =>
    (await world.consumer.api.get(nodes, { name: 'vn1' }))?.status?.conditions?.some(
      ({ type, status }) => type === 'Ready' && status === 'True',
    ),
  );

test('without a link no Service of this cluster sends to an address that is a pod of its own, and with one it does', async () => {
  const { api } = world.consumer;
  const network = { namespace: 'liqo', name: 'pod-cidr' };
  const labels = { 'ipam.liqo.io/network-type': 'pod-cidr' };
  const asked = { apiVersion: 'ipam.liqo.io/v1alpha1', kind: 'Network', metadata: { ...network, labels } };
  await api.create(networkKinds.networks, { ...asked, spec: { cidr: '10.9.0.0/16' } } as never);
  await api.mergePatch(networkKinds.networks, network, { status: { cidr: '10.9.0.0/16' } }, { subresource: 'status' });
  await createVirtualNode(world, 'vn1');
  await readyNode();
  await mapNamespaces(world, ['demo']);
  await api.create(services, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'demo', name: 'web' },
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
  } as never);
  await api.create(pods, boundPod('demo', 'web', 'vn1'));
  await runPod(world, 'demo-cons', 'web');
  const pod = await eventually('running', async () => {
    const found = await api.get(pods, { namespace: 'demo', name: 'web' });
    return found?.status?.phase === 'Running' && found;
  });
  expect([pod.status?.podIP, pod.status?.podIPs]).toEqual([undefined, undefined]);
  const endpoints = async () =>
    (await api.list(endpointSlices, { namespace: 'demo' })).flatMap((slice) =>
      (slice.endpoints ?? []).map(({ addresses, conditions }) => `${addresses} ready=${conditions?.ready}`),
    );
  const events = async () => (await api.list(coreEvents, { namespace: 'demo' })).map(({ reason }) => reason);
  await eventually('the reason', async () => (await events()).includes('PodIPHidden'));
  // What the endpoints controller knows of is there: of a pod without an address it makes nothing.
  await api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'elsewhere' } } as never);
  await api.create(pods, boundPod('demo', 'neighbour', 'elsewhere'));
  await api.mergePatch(pods, { namespace: 'demo', name: 'neighbour' }, { metadata: { labels: { app: 'web' } } });
  const status = { phase: 'Running', podIP: '10.9.1.1', podIPs: [{ ip: '10.9.1.1' }] };
  await api.mergePatch(pods, { namespace: 'demo', name: 'neighbour' }, { status }, { subresource: 'status' });
  await eventually('an endpoint', async () => (await endpoints()).length > 0);
  expect(await endpoints()).toEqual(['10.9.1.1 ready=false']);

  const configuration = { namespace: tenantNamespace, name: 'prov' };
  const spec = { remote: { cidr: { pod: ['10.9.0.0/16'], external: ['10.70.0.0/16'] } } };
  await api.create(networkKinds.configurations, {
    apiVersion: 'networking.liqo.io/v1beta1',
    kind: 'Configuration',
    metadata: { ...configuration, labels: { 'liqo.io/remote-cluster-id': 'prov' } },
    spec,
  } as never);
  const views = { remote: { cidr: { pod: ['10.71.0.0/16'], external: ['10.72.0.0/16'] } } };
  await api.mergePatch(networkKinds.configurations, configuration, { status: views }, { subresource: 'status' });
  await eventually('the endpoint by its name here', async () => (await endpoints()).includes('10.71.9.9 ready=true'));
  const linked = await api.get(pods, { namespace: 'demo', name: 'web' });
  expect(JSON.stringify(linked?.status?.conditions)).not.toContain('PodIPShown');

  await mapNamespaces(world, []);
  const over = await eventually('aborted', async () => {
    const found = await api.get(pods, { namespace: 'demo', name: 'web' });
    return found?.status?.phase === 'Failed' && found;
  });
  const [container] = over.status?.containerStatuses ?? [];
  expect(container).toMatchObject({
    ready: false,
    state: { terminated: { exitCode: 1, reason: 'OffloadingAborted' } },
  });
  expect(container?.state).not.toHaveProperty('running');
  expect(over.status?.conditions?.filter(({ status }) => status === 'True')).toEqual([]);
});

test('a VirtualNode that goes while its end is being written down is no failure', async () => {
  const { api } = world.consumer;
  const own = { namespace: tenantNamespace, name: 'vn1' };
  await readyNode();
  let removals = 0;
  beforeStatus = async () => {
    const found = await api.get(virtualNodes, own);
    if (found?.metadata.deletionTimestamp === undefined) return;
    removals += 1;
    await api.mergePatch(virtualNodes, own, { metadata: { finalizers: null } });
    await eventually('gone', async () => (await api.get(virtualNodes, own)) === undefined);
  };
  errors.length = 0;
  await api.delete(virtualNodes, own);
  await eventually('gone behind its back', () => Promise.resolve(removals > 0));
  beforeStatus = async () => {};
  // The controller still works: the next of that name gets its Node.
  await api.delete(nodes, { name: 'vn1' });
  await createVirtualNode(world, 'vn2');
  await eventually('the next one', async () =>
    (await api.get(virtualNodes, { namespace: tenantNamespace, name: 'vn2' }))?.status?.conditions?.some(
      ({ type, status }) => type === 'Node' && status === 'Running',
    ),
  );
  expect(errors.filter((text) => text.includes('not found'))).toEqual([]);
  expect(errors.filter((text) => text.startsWith('reconcile failed'))).toEqual([]);
});
