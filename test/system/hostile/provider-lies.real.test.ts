/**
 * A provider that lies in every field, on real API servers: in the status, labels and annotations of pods, in slices, namespace maps, credentials and renewals, in
 * Events, and in the copies of what is reflected. After each lie its consumer has changed nothing but what it shows of that provider, shows no address
 * that is not the provider's, and has handed over nothing that is not offloaded.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  configMaps,
  coreEvents,
  endpointSlices,
  namespaces,
  nodes,
  pods,
  secrets,
  services,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  boundPod,
  createVirtualNode,
  mapNamespaces,
  runPod,
  tenantNamespace,
} from '#test/harness/offloading-clusters.ts';
import { type LinkedConsumer, peerLabels, startLinkedConsumer } from './linked-consumer.ts';
import { anyLie, type Lie, strangeCertificate } from './provider-lies.ts';

const lies = 300;
const atOnce = 6;
let linked: LinkedConsumer;
let world: LinkedConsumer['world'];
const stop = new AbortController();
const treasure = 'a thing that is not offloaded';
const web = { namespace: 'demo', name: 'web' };
const slice = { namespace: tenantNamespace, name: 'claims' };
const map = { namespace: tenantNamespace, name: 'prov' };
const controlPlane = { namespace: tenantNamespace, name: 'controlplane-prov' };
/** Kubeconfigs by which the agent logs in at the provider: by what that one says. */
const logins = ['kubeconfig-resourceslice-claims', 'kubeconfig-controlplane-prov'];
const publicServer = 'https://prov.example:6443';
/** What was seen at any moment and may never be. */
const wrongs: string[] = [];

beforeAll(async () => {
  linked = await startLinkedConsumer();
  world = linked.world;
  const { api, caches } = world.consumer;
  const { create } = linked;
  const data = { key: Buffer.from(treasure).toString('base64') };
  for (const namespace of ['kube-system', 'default', 'liqo']) {
    await api.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name: 'treasure' }, data });
    await api.create(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace, name: 'treasure' },
      data,
    });
  }
  await createVirtualNode(world, 'vn1');
  await mapNamespaces(world, ['demo']);
  await create(services as ResourceType, 'web', { selector: { app: 'web' }, ports: [{ port: 80 }] }, {}, 'demo');
  await api.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'demo', name: 'lent' },
    data: { key: 'eA==' },
  });
  await api.create(pods, boundPod('demo', 'web', 'vn1'));
  const metadata = {
    labels: { 'liqo.io/replication': 'true', 'liqo.io/remoteID': 'prov', ...peerLabels },
    annotations: { 'liqo.io/create-virtual-node': 'true' },
  };
  const spec = { class: 'default', providerClusterID: 'prov', consumerClusterID: 'cons', resources: { cpu: '1' } };
  await create(resourceSlices as ResourceType, 'claims', spec, metadata, tenantNamespace);
  const authParams = { apiServer: publicServer, signedCRT: strangeCertificate(2026) };
  const identity = { clusterID: 'prov', type: 'ControlPlane', namespace: 'liqo-tenant-cons', authParams };
  await create(identities as ResourceType, controlPlane.name, identity, { labels: peerLabels }, tenantNamespace);
  await eventually('the kubeconfig of the replication', () =>
    api.get(secrets, { namespace: tenantNamespace, name: 'kubeconfig-controlplane-prov' }),
  );
  await eventually('its request to be renewed', () => api.get(renews, controlPlane));
  await runPod(world, 'demo-cons', 'web');
  await eventually('the true endpoint', async () => (await endpoints()).join() === '10.71.9.9');
  await eventually('the copy of the Service', () =>
    world.provider.api.get(services, { namespace: 'demo-cons', name: 'web' }),
  );
  await eventually('the copy of the Secret', () =>
    world.provider.api.get(secrets, { namespace: 'demo-cons', name: 'lent' }),
  );

  const first = await api.get(pods, web);
  caches.scoped(pods, {}, stop.signal).subscribe(({ after }) => {
    if (after?.metadata.name === 'web' && after.metadata.namespace === 'demo') judgePod(first as Pod, after);
  });
  caches.scoped(endpointSlices, { namespace: 'demo' }, stop.signal).subscribe(({ after }) => {
    for (const address of (after?.endpoints ?? []).flatMap((one) => one.addresses))
      if (!address.startsWith('10.71.')) wrongs.push(`endpoint ${address}`);
  });
  caches.scoped(nodes, {}, stop.signal).subscribe(({ after }) => {
    if (after === undefined) return;
    const { name, labels = {} } = after.metadata;
    if (!['worker', 'vn1', 'claims'].includes(name)) wrongs.push(`node ${name}`);
    for (const key of ['region', 'node-role.kubernetes.io/control-plane', 'isthmus.dev/peering'])
      if (key in labels) wrongs.push(`node ${name} bears ${key}`);
  });
  caches.scoped(secrets, { namespace: tenantNamespace }, stop.signal).subscribe(({ after }) => {
    if (after === undefined || !logins.includes(after.metadata.name)) return;
    const text = Buffer.from(after.data?.kubeconfig ?? '', 'base64').toString();
    if (!/server: "?https:/.test(text) || /169\.254|kubernetes\.default|10\.9\.0\.1/.test(text)) wrongs.push(text);
  });
}, 300_000);
afterAll(async () => {
  stop.abort();
  await linked?.stop();
});

function judgePod(first: Pod, { metadata, spec, status = {} }: Pod): void {
  const shown = [status.podIP, ...(status.podIPs ?? []).map(({ ip }) => ip)].filter((ip) => ip !== undefined);
  for (const ip of shown) if (!ip.startsWith('10.71.')) wrongs.push(`pod address ${ip}`);
  if (status.hostIP !== undefined && status.hostIP !== '127.0.0.1') wrongs.push(`host address ${status.hostIP}`);
  if (JSON.stringify(spec) !== JSON.stringify(first.spec)) wrongs.push(`spec ${JSON.stringify(spec)}`);
  if (JSON.stringify(metadata.labels) !== JSON.stringify(first.metadata.labels))
    wrongs.push(`labels ${JSON.stringify(metadata.labels)}`);
  if (metadata.deletionTimestamp !== undefined) wrongs.push('the pod is deleted');
}
const endpoints = async (): Promise<readonly string[]> =>
  (await world.consumer.api.list(endpointSlices, { namespace: 'demo' })).flatMap((one) =>
    (one.endpoints ?? []).flatMap(({ addresses }) => addresses),
  );

/** Everything in this cluster that no word of a provider is about. */
async function untouched(): Promise<string> {
  const { api } = world.consumer;
  const told = async (type: ResourceType, is: (object: KubeObject) => boolean = () => true) =>
    (await api.list<KubeObject>(type)).filter(is).map(({ kind, metadata, ...rest }) => {
      const { namespace, name, uid, labels, annotations } = metadata;
      const { status: _, ...content } = rest as { status?: unknown };
      return JSON.stringify({ type: type.kind, namespace, name, uid, labels, annotations, content });
    });
  const all = await Promise.all([
    told(secrets as ResourceType, ({ metadata }) => !logins.includes(metadata.name)),
    told(configMaps as ResourceType),
    told(services as ResourceType),
    told(namespaces as ResourceType),
    told(
      identities as ResourceType,
      ({ metadata }) => !['resourceslice-claims', controlPlane.name].includes(metadata.name),
    ),
    api.get(identities, controlPlane).then((found) => [JSON.stringify({ ...found?.spec, authParams: {} })]),
  ]);
  return all.flat().sort().join('\n');
}

/** As its API server, or the replication of what it said, brings it here. False: a real API server refuses that. */
async function tell({ about, body }: Lie): Promise<boolean> {
  const { consumer, provider } = world;
  const there = { namespace: 'demo-cons', name: 'web' };
  const status = { subresource: 'status' } as const;
  const accepted = ['Authentication', 'Resources'].map((type) => ({
    type,
    status: 'Accepted',
    reason: 'x',
    message: 'x',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }));
  try {
    if (about === 'pod status') await provider.api.mergePatch(pods, there, { status: body }, status);
    if (about === 'pod metadata') await provider.api.mergePatch(pods, there, { metadata: body });
    if (about === 'copy of a Secret')
      await provider.api.mergePatch(secrets, { namespace: 'demo-cons', name: 'lent' }, body);
    if (about === 'copy of a Service')
      await provider.api.mergePatch(services, { namespace: 'demo-cons', name: 'web' }, body);
    if (about === 'EndpointSlice')
      await provider.api.create(endpointSlices, {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: {
          namespace: 'demo-cons',
          generateName: 'lie-',
          name: '',
          labels: { 'kubernetes.io/service-name': 'web' },
        },
        ...body,
      } as never);
    if (about === 'event')
      await provider.api.create(coreEvents, {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { namespace: 'demo-cons', generateName: 'lie-', name: '' },
        ...(body as object),
      } as never);
    if (about === 'map') await consumer.api.mergePatch(namespaceMaps, map, { status: body }, status);
    if (about === 'renewal') await consumer.api.mergePatch(renews, controlPlane, { status: body }, status);
    if (about === 'slice')
      await consumer.api.mergePatch(resourceSlices, slice, { status: { ...body, conditions: accepted } }, status);
    return true;
  } catch (error) {
    const { code = '' } = error as { code?: string };
    if (['kube_invalid', 'kube_forbidden', 'kube_failed'].includes(code)) return false;
    throw error;
  }
}

/** What is at the provider of what no namespace map asked for. */
async function treasures(): Promise<readonly string[]> {
  const { api } = world.provider;
  const all = [...(await api.list(secrets)), ...(await api.list(configMaps))];
  const found = all.filter(({ data = {} }) => JSON.stringify(data).includes(Buffer.from(treasure).toString('base64')));
  return found.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
}

test('a namespace that only the provider calls offloaded is not reflected to it', async () => {
  const { api } = world.consumer;
  const currentMapping = Object.fromEntries(
    ['kube-system', 'default', 'liqo'].map((name) => [name, { remoteNamespace: 'default-cons', phase: 'Accepted' }]),
  );
  await api.mergePatch(namespaceMaps, map, { status: { currentMapping } }, { subresource: 'status' });
  // What changes later arrives, more than once: what was to follow the map has followed it.
  for (const name of ['later', 'last']) {
    await api.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'demo', name },
      data: { key: 'eA==' },
    });
    const copy = { namespace: 'demo-cons', name };
    await eventually(`the copy of ${name}`, () => world.provider.api.get(secrets, copy));
  }
  expect(await treasures()).toEqual([]);
});

test('what a provider renews changes by what its replication logs in, and by nothing else', async () => {
  const { api } = world.consumer;
  const login = async (): Promise<string> => {
    const secret = await api.get(secrets, { namespace: tenantNamespace, name: 'kubeconfig-controlplane-prov' });
    return Buffer.from(secret?.data?.kubeconfig ?? '', 'base64').toString();
  };
  const renewed = (authParams: object) =>
    api.mergePatch(renews, controlPlane, { status: { authParams } }, { subresource: 'status' });
  const before = await untouched();
  await renewed({ signedCRT: strangeCertificate(2091), apiServer: 'http://10.96.0.1' });
  await eventually('the answer to be taken over', async () => {
    const { authParams } = (await api.get(identities, controlPlane))?.spec ?? {};
    return authParams?.apiServer === 'http://10.96.0.1';
  });
  expect(await login()).toContain(publicServer);
  // A later answer that may be followed shows that the one before was judged.
  await renewed({ signedCRT: strangeCertificate(2092), apiServer: 'https://later.example:6443' });
  await eventually('the later answer to be followed', async () =>
    (await login()).includes('https://later.example:6443'),
  );
  expect(wrongs).toEqual([]);
  expect(await untouched()).toBe(before);
});

test(`${lies} lies of a provider show no address of another, change nothing else here and get nothing that is not offloaded`, async () => {
  const before = await untouched();
  let told = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(anyLie, { minLength: atOnce, maxLength: atOnce }), async (some) => {
      for (const lie of some) if (await tell(lie)) told += 1;
      expect(wrongs).toEqual([]);
      expect(await untouched()).toBe(before);
    }),
    { numRuns: lies / atOnce, endOnFailure: true },
  );
  // Most are such that a real API server takes them.
  expect(told).toBeGreaterThan(lies / 2);
  await mapNamespaces(world, ['demo']);
  await world.provider.api.mergePatch(
    pods,
    { namespace: 'demo-cons', name: 'web' },
    { status: { podIP: null, podIPs: null } },
    { subresource: 'status' },
  );
  await runPod(world, 'demo-cons', 'web');
  await eventually('the truth', async () => {
    const local = await world.consumer.api.get(pods, web);
    return local?.status?.phase === 'Running' && (await endpoints()).join() === '10.71.9.9';
  });
  expect(wrongs).toEqual([]);
  expect(await treasures()).toEqual([]);
}, 300_000);
