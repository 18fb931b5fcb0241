/**
 * A malicious provider on real API servers: it lies about the addresses of pods, the labels of its node and where its API server is, and it sends more than
 * this cluster can hold.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { toBase64 } from '#agent/pki/pem.ts';
import { createCaches } from '#kube/cache/informer-factory.ts';
import { AnswerBounds, type BoundSizes } from '#kube/http/answer-bounds.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import {
  configMaps,
  coreEvents,
  endpointSlices,
  namespaces,
  pods,
  secrets,
  services,
} from '#shared/domain/core-kinds.ts';
import type { Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  boundPod,
  createVirtualNode,
  mapNamespaces,
  runPod,
  tenantNamespace,
} from '#test/harness/offloading-clusters.ts';
import { type LinkedConsumer, peerLabels, startLinkedConsumer } from './linked-consumer.ts';

const deps = { clock: systemClock, log: silentLog };
const stop = new AbortController();
let linked: LinkedConsumer;
let world: LinkedConsumer['world'];
let create: LinkedConsumer['create'];

const reasonsOf = async (name: string): Promise<readonly (string | undefined)[]> =>
  (await world.consumer.api.list(coreEvents))
    .filter(({ involvedObject }) => involvedObject?.name === name)
    .map(({ reason }) => reason);

beforeAll(async () => {
  linked = await startLinkedConsumer();
  ({ world, create } = linked);
}, 300_000);
afterAll(async () => {
  stop.abort();
  await linked?.stop();
});

test('an address that the provider makes up becomes no endpoint of a Service here, and the true one does', async () => {
  const { api } = world.consumer;
  await createVirtualNode(world, 'vn1');
  await mapNamespaces(world, ['demo']);
  const service = { selector: { app: 'web' }, ports: [{ port: 80 }] };
  await create(services as ResourceType, 'web', service, {}, 'demo');
  await api.create(pods, boundPod('demo', 'web', 'vn1'));
  await runPod(world, 'demo-cons', 'web');
  const addresses = async () =>
    (await api.list(endpointSlices, { namespace: 'demo' })).flatMap(({ endpoints }) =>
      (endpoints ?? []).flatMap((one) => one.addresses),
    );
  const local = () => api.get(pods, { namespace: 'demo', name: 'web' });
  const say = (podIP: string) =>
    world.provider.api.mergePatch(
      pods,
      { namespace: 'demo-cons', name: 'web' },
      { status: { podIP, podIPs: [{ ip: podIP }] } },
      { subresource: 'status' },
    );
  await eventually('the endpoint', async () => (await addresses()).join() === '10.71.9.9');
  // Of another peer as it is called here, of a node, and of what this cluster calls the provider itself.
  for (const forged of ['10.73.0.9', '192.0.2.11', '10.71.0.1', '169.254.169.254']) {
    await say(forged);
    const hidden = await eventually(`${forged} is dropped`, async () => {
      const found = await local();
      const shown = found?.status?.conditions?.find(({ type }) => String(type) === 'isthmus.dev/PodIPShown');
      return shown?.message?.includes(forged) ? { pod: found as Pod, shown } : undefined;
    });
    expect(hidden.shown).toMatchObject({ status: 'False', reason: 'OutsideRanges' });
    expect(hidden.pod.status?.podIP).toBeUndefined();
    await eventually('no endpoint', async () => (await addresses()).length === 0);
    await say('10.9.9.9');
    await eventually('the endpoint again', async () => (await addresses()).join() === '10.71.9.9');
  }
  expect(await reasonsOf('web')).toContain('PodIPHidden');
});

test('labels that the provider claims for its node count only as this cluster lists them', async () => {
  const { api } = world.consumer;
  const metadata = {
    labels: { 'liqo.io/replication': 'true', 'liqo.io/remoteID': 'prov', ...peerLabels },
    annotations: { 'liqo.io/create-virtual-node': 'true' },
  };
  const spec = { class: 'default', providerClusterID: 'prov', consumerClusterID: 'cons', resources: { cpu: '1' } };
  await create(resourceSlices as ResourceType, 'claims', spec, metadata, tenantNamespace);
  const at = { namespace: tenantNamespace, name: 'claims' };
  const conditions = ['Authentication', 'Resources'].map((type) => ({
    type,
    status: 'Accepted',
    reason: 'x',
    message: 'x',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }));
  const claimed = { region: 'eu', tier: 'gold', 'kubernetes.io/arch': 'arm64' };
  const status = { conditions, resources: { cpu: '1' }, nodeLabels: claimed };
  await api.mergePatch(resourceSlices, at, { status }, { subresource: 'status' });
  await create(
    identities as ResourceType,
    'resourceslice-claims',
    { clusterID: 'prov', type: 'ResourceSlice', authParams: {} },
    { labels: peerLabels },
    tenantNamespace,
  );
  const identity = { namespace: tenantNamespace, name: 'resourceslice-claims' };
  const secretRef = { kubeconfigSecretRef: { name: 'kubeconfig-resourceslice-vn1' } };
  await api.mergePatch(identities, identity, { status: secretRef }, { subresource: 'status' });
  const labels = async () => (await api.get(virtualNodes, at))?.spec.labels;
  const made = await eventually('the VirtualNode', labels);
  expect(made).toEqual({ 'kubernetes.io/arch': 'arm64' });
  await eventually('what was left out', async () => (await reasonsOf('claims')).includes('LabelsNotBelieved'));
  const believed = { asConsumer: { peers: ['prov'], nodeLabels: { region: ['eu', 'us'], tier: ['silver'] } } };
  await create(peeringPolicies as ResourceType, 'believed', believed);
  await eventually('what is listed', async () => (await labels())?.region === 'eu');
  expect(await labels()).toEqual({ region: 'eu', 'kubernetes.io/arch': 'arm64' });
  await api.delete(peeringPolicies, { name: 'believed' });
  await eventually('nothing of it', async () => (await labels())?.region === undefined);
});

test('the agent gets no credentials for an API server without TLS or behind a proxy that is a host of this cluster', async () => {
  const { api } = world.consumer;
  const certificate = toBase64('-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n');
  const https = 'https://prov.example:6443';
  const lies = [
    { apiServer: 'http://prov.example' },
    { apiServer: https, proxyURL: 'http://169.254.169.254' },
    { apiServer: https, proxyURL: 'http://kubernetes.default.svc:443' },
    { apiServer: https, proxyURL: 'http://10.9.0.1:8118' },
  ];
  const kubeconfig = (name: string) => api.get(secrets, { namespace: tenantNamespace, name: `kubeconfig-${name}` });
  const claim = (name: string, authParams: object) => {
    const spec = { clusterID: 'prov', type: 'ResourceSlice', authParams: { ...authParams, signedCRT: certificate } };
    return create(identities as ResourceType, name, spec, { labels: peerLabels }, tenantNamespace);
  };
  for (const [i, lie] of lies.entries()) {
    await claim(`lie-${i}`, lie);
    await eventually(`lie ${i} is refused`, async () => (await reasonsOf(`lie-${i}`)).includes('EndpointRefused'));
    expect(await kubeconfig(`lie-${i}`)).toBeUndefined();
  }
  await claim('through-the-link', { apiServer: https, proxyURL: 'http://10.72.0.9:8118' });
  await eventually('credentials', () => kubeconfig('through-the-link'));
  const accepted = { 'isthmus.dev/accepted-endpoints': 'http,private-proxy' };
  await api.mergePatch(namespaces, { name: tenantNamespace }, { metadata: { annotations: accepted } });
  for (const i of lies.keys()) await eventually(`lie ${i} as asked for`, () => kubeconfig(`lie-${i}`));
});

test('a provider that sends more than it may costs its own caches, and the next connection has what it needs', async () => {
  const namespace = 'demo-cons';
  const text = 'x'.repeat(200_000);
  for (let i = 0; i < 30; i++) {
    const metadata = { namespace, name: `flood-${i}`, labels: { flood: String(i % 3 === 0) } };
    await world.provider.api.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { text } });
  }
  const open = async (sizes?: Partial<BoundSizes>) => {
    const bounds = new AnswerBounds('https://prov', sizes);
    const connection = await connectKubeconfig(world.servers.provider.kubeconfig, { bounds });
    const caches = createCaches(connection, deps, stop.signal, { timing: { backoffBaseMs: 1, backoffMaxMs: 50 } });
    return { connection, caches, api: createKubeApi(connection, deps) };
  };
  const small = await open({ answerBytes: 1_000_000, inFlightBytes: 2_000_000, keptBytes: 3_000_000 });
  const tooLarge = { code: 'kube_failed', message: expect.stringContaining('https://prov sends too much') };
  await expect(small.api.list(configMaps, { namespace })).rejects.toMatchObject(tooLarge);
  const flooded = small.caches.cache(configMaps, { namespace });
  // A third of it fits, in pages that are smaller than asked for first.
  const some = small.caches.cache(configMaps, { namespace, labelSelector: 'flood=true' });
  await some.synced();
  expect(some.list()).toHaveLength(10);
  expect([flooded.isSynced(), flooded.list()]).toEqual([false, []]);
  const other = await open();
  const all = other.caches.cache(configMaps, { namespace, labelSelector: 'flood' });
  await all.synced();
  expect(all.list()).toHaveLength(30);
  small.connection.close();
  other.connection.close();
});
