/** From GatewayServer and GatewayClient to pods, Service, keys and Connection on a real API server; kubelet, scheduler and load balancer are played. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createNetworkControllers } from '#agent/controllers/network-controllers.ts';
import { openCluster } from '#agent/kube/cluster.ts';
import { connectKubeconfig } from '#agent/kube/kubeconfig.ts';
import type { Cluster } from '#agent/kube/types.ts';
import { createWireGuardKeys, publicKeyOf } from '#agent/pki/wireguard-keys.ts';
import { systemClock } from '#agent/runtime/clock.ts';
import {
  customResourceDefinitions as crds,
  deployments,
  namespaces,
  nodes,
  pods,
  secrets,
  services,
} from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type Pod, type ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { customResourceDefinitions } from '#shared/schema/crd.ts';
import { type GatewayClientSpec, gatewayClients } from '#shared/schema/liqo/gateway-client.ts';
import { type GatewayServer, type GatewayServerSpec, gatewayServers } from '#shared/schema/liqo/gateway-server.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';

const peer = 'milan';
const namespace = 'liqo-tenant-milan';
const deps = { clock: systemClock, log: silentLog };
let server: TestApiServer;
let cluster: Cluster;
let stopClients: AbortController;
let agent: { readonly stop: AbortController; readonly ended: Promise<unknown> };

function startAgent(): typeof agent {
  const stop = new AbortController();
  const ended = (async () => {
    const own = openCluster(await connectKubeconfig(server.kubeconfig), deps, stop.signal);
    const all = createNetworkControllers({ ...deps, cluster: own, clusterId: 'rome', systemNamespace: 'liqo' });
    await Promise.all(all.map((controller) => controller.run(stop.signal)));
  })();
  return { stop, ended };
}
async function stopAgent(): Promise<void> {
  agent.stop.abort();
  await agent.ended;
}

const port = { port: '{{ .Spec.Endpoint.Port }}', targetPort: '{{ .Spec.Endpoint.Port }}', protocol: 'UDP' };
const podTemplate = {
  spec: { template: { spec: { containers: [{ name: 'wireguard', image: 'isthmus.dev/agent' }] } } },
};
const templates = {
  server: {
    service: {
      spec: {
        type: '{{ .Spec.Endpoint.ServiceType }}',
        ports: [{ ...port, '?nodePort': '{{ .Spec.Endpoint.NodePort }}' }],
      },
    },
    deployment: podTemplate,
  },
  client: { deployment: podTemplate },
};

async function createTemplate(role: 'server' | 'client', spec: object = templates[role]): Promise<void> {
  const isServer = role === 'server';
  const type = (
    isServer ? networkKinds.wgGatewayServerTemplates : networkKinds.wgGatewayClientTemplates
  ) as ResourceType<never>;
  const kind = isServer ? 'WgGatewayServer' : 'WgGatewayClient';
  const apiVersion = 'networking.liqo.io/v1beta1';
  await cluster.api.apply(
    type,
    {
      apiVersion,
      kind: type.kind,
      metadata: { name: `wireguard-${role}`, namespace: 'liqo' },
      spec: { objectKind: { apiVersion, kind }, template: { spec } },
    } as never,
    { fieldManager: 'test' },
  );
}

const node = (name: string, address: string, ready = true) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  status: {
    addresses: [
      { type: 'InternalIP', address },
      { type: 'Hostname', address: name },
    ],
    conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
  },
});

beforeAll(async () => {
  server = await startApiServer({ controllerManager: true });
  stopClients = new AbortController();
  cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, stopClients.signal);
  const { api } = cluster;
  await Promise.all(customResourceDefinitions().map((definition) => api.create(crds, definition as never)));
  await eventually('the kinds', async () => {
    await Promise.all(Object.values(networkKinds).map((kind) => api.list(kind as ResourceType)));
    return true;
  });
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'liqo' } });
  const labels = { 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-id': peer };
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } });
  for (const [name, address] of [
    ['n1', '192.0.2.11'],
    ['n2', '192.0.2.12'],
  ] as const)
    await api.create(nodes, node(name, address) as never);
}, 300_000);
afterAll(async () => {
  stopClients?.abort();
  await server?.stop();
});

beforeEach(async () => {
  await createTemplate('server');
  await createTemplate('client');
  agent = startAgent();
});
afterEach(async () => {
  const { api } = cluster;
  for (const type of [gatewayServers, gatewayClients, networkKinds.publicKeys] as ResourceType[])
    for (const { metadata } of await api.list(type))
      await api.delete(type, { namespace: metadata.namespace ?? '', name: metadata.name });
  for (const { metadata } of await api.list(pods))
    await api.delete(pods, { namespace, name: metadata.name }, { gracePeriodSeconds: 0 });
  await eventually('nothing left', async () => (await leftovers()).length === 0);
  await stopAgent();
});

/** Everything that a gateway brought into the tenant namespace. */
async function leftovers(): Promise<string[]> {
  const kinds = [
    gatewayServers,
    gatewayClients,
    networkKinds.wgGatewayServers,
    networkKinds.wgGatewayClients,
    networkKinds.connections,
    deployments,
    services,
    secrets,
    pods,
  ] as ResourceType[];
  const lists = await Promise.all(kinds.map((type) => cluster.api.list(type, { namespace })));
  return lists.flat().map(({ kind, metadata }) => `${kind} ${metadata.name}`);
}

const labels = { 'liqo.io/remote-cluster-id': peer };
const createServer = (spec: Partial<GatewayServerSpec> = {}, name = peer, annotations: Record<string, string> = {}) =>
  cluster.api.create(gatewayServers, {
    apiVersion: apiVersionOf(gatewayServers),
    kind: 'GatewayServer',
    metadata: { name, namespace, labels, annotations },
    spec: { endpoint: { port: 51_840, serviceType: 'NodePort' }, ...spec },
  });
const createClient = (spec: Partial<GatewayClientSpec> = {}, annotations: Record<string, string> = {}) =>
  cluster.api.create(gatewayClients, {
    apiVersion: apiVersionOf(gatewayClients),
    kind: 'GatewayClient',
    metadata: { name: peer, namespace, labels, annotations },
    spec: { endpoint: { addresses: ['198.51.100.1'], port: 30_000, protocol: 'UDP' }, ...spec },
  });
const createKey = (name = peer) =>
  cluster.api.create(networkKinds.publicKeys, {
    apiVersion: apiVersionOf(networkKinds.publicKeys),
    kind: 'PublicKey',
    metadata: { name, namespace, labels: { ...labels, 'networking.liqo.io/gateway-resource': 'true' } },
    spec: { publicKey: Buffer.from(createWireGuardKeys().publicKey).toString('base64') },
  });
const gatewayServer = () => cluster.api.get(gatewayServers, { namespace, name: peer });
const child = <T extends { apiVersion: string; kind: string; metadata: { name: string } }>(type: ResourceType<T>) =>
  eventually(`${type.kind} gw-${peer}`, () => cluster.api.get(type, { namespace, name: `gw-${peer}` }), {
    everyMs: 20,
  });
const readyReason = (gateway: GatewayServer | undefined): string | undefined =>
  gateway?.status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
const reason = (wanted: string) =>
  eventually(`reason ${wanted}`, async () => {
    const found = await gatewayServer();
    return readyReason(found) === wanted ? found : undefined;
  });

/** The part of Deployment controller, scheduler, kubelet and node process. */
async function runPod(name: string, nodeName: string, ip: string, active = true): Promise<void> {
  const deployment = await child(deployments);
  const { metadata, spec } = deployment.spec?.template ?? {};
  await cluster.api.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      labels: { ...metadata?.labels, ...(active ? { 'networking.liqo.io/active': 'true' } : {}) },
    },
    spec: { ...spec, nodeName, containers: spec?.containers ?? [] },
  } as Pod);
  const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }] };
  await cluster.api.mergePatch(pods, { namespace, name }, { status }, { subresource: 'status' });
}

test('a GatewayServer becomes keys, pods and a Service; its endpoint names every ready node, the one of the active pod first', async () => {
  await createServer({
    serviceLabels: { tier: 'edge' },
    endpoint: { port: 51_840, serviceType: 'NodePort', nodePort: 30_840 },
  });
  const [deployment, service, secret] = await Promise.all([child(deployments), child(services), child(secrets)]);
  expect(service.spec).toMatchObject({
    type: 'NodePort',
    ports: [{ port: 51_840, nodePort: 30_840, protocol: 'UDP' }],
  });
  expect(service.metadata.labels).toMatchObject({ tier: 'edge' });
  expect(service.spec?.selector).toMatchObject({
    'networking.liqo.io/active': 'true',
    'networking.liqo.io/gateway-name': peer,
  });
  expect(secret.metadata.labels).toMatchObject({ ...labels, 'networking.liqo.io/gateway-resource': 'true' });
  const privateKey = Buffer.from(secret.data?.privateKey ?? '', 'base64');
  expect(Buffer.from(publicKeyOf(privateKey)).toString('base64')).toBe(secret.data?.publicKey);
  const pod = deployment.spec?.template.spec;
  expect(pod).toMatchObject({ automountServiceAccountToken: false });
  expect(pod?.containers[0]).toMatchObject({
    command: ['wireguard-go', '-f', 'liqo-tunnel'],
    volumeMounts: [{ mountPath: '/etc/wireguard/keys', readOnly: true }],
  });
  expect(pod?.volumes).toEqual([
    expect.objectContaining({ secret: expect.objectContaining({ secretName: 'gw-milan' }) }),
  ]);
  const first = await reason('NoActivePod');
  expect(first.status?.endpoint).toEqual({ addresses: ['192.0.2.11', '192.0.2.12'], port: 30_840, protocol: 'UDP' });

  await runPod('p1', 'n2', '10.200.2.5');
  const found = await reason('PublicKeyMissing');
  expect(found.status).toMatchObject({
    serverRef: { kind: 'WgGatewayServer', name: peer, namespace },
    endpoint: { addresses: ['192.0.2.12', '192.0.2.11'], port: 30_840, protocol: 'UDP' },
    secretRef: { name: 'gw-milan', namespace },
    internalEndpoint: { ip: '10.200.2.5', node: 'n2' },
  });
  await eventually('candidates', async () => {
    const text = (await gatewayServer())?.metadata.annotations?.['networking.isthmus.dev/candidates'];
    return text === '["192.0.2.12:30840","192.0.2.11:30840"]';
  });

  await createKey();
  await reason('Ready');
  const connection = await eventually('the Connection', async () => {
    const one = await cluster.api.get(networkKinds.connections, { namespace, name: 'gw-milan' });
    return one?.status?.value === 'Connecting' ? one : undefined;
  });
  expect(connection.spec).toEqual({
    type: 'Server',
    gatewayRef: { apiVersion: 'networking.liqo.io/v1beta1', kind: 'WgGatewayServer', name: peer, namespace },
  });
  expect(connection.metadata.ownerReferences).toEqual([
    expect.objectContaining({ kind: 'GatewayServer', uid: found.metadata.uid }),
  ]);
});

test('endpoint and internal endpoint follow nodes and pods', async () => {
  await createServer();
  await runPod('p1', 'n1', '10.200.1.5');
  await createKey();
  await reason('Ready');
  const endpoint = async () => (await gatewayServer())?.status?.endpoint?.addresses?.join(' ');
  const set = (name: string, status: object) =>
    cluster.api.mergePatch(nodes, { name }, { status }, { subresource: 'status' });
  await set('n2', { conditions: [{ type: 'Ready', status: 'False' }] });
  await eventually('the node that is not ready is left out', async () => (await endpoint()) === '192.0.2.11');
  await set('n2', {
    conditions: [{ type: 'Ready', status: 'True' }],
    addresses: [{ type: 'ExternalIP', address: '203.0.113.2' }],
  });
  await eventually('a better address counts', async () => (await endpoint()) === '192.0.2.11 203.0.113.2');
  await runPod('p2', 'n2', '10.200.2.5', false);
  await cluster.api.mergePatch(
    pods,
    { namespace, name: 'p1' },
    { metadata: { labels: { 'networking.liqo.io/active': null } } },
  );
  await reason('NoActivePod');
  await cluster.api.mergePatch(
    pods,
    { namespace, name: 'p2' },
    { metadata: { labels: { 'networking.liqo.io/active': 'true' } } },
  );
  const moved = await reason('Ready');
  expect(moved.status?.internalEndpoint).toEqual({ ip: '10.200.2.5', node: 'n2' });
  await eventually('its node comes first', async () => (await endpoint()) === '203.0.113.2 192.0.2.11');
  await set('n2', node('n2', '192.0.2.12').status);
});

test('a load balancer without address is said, and its address is published when it comes', async () => {
  await createServer({ endpoint: { port: 51_840, serviceType: 'LoadBalancer' } });
  const waiting = await reason('NoLoadBalancerAddress');
  expect(waiting.status?.conditions?.[0]?.message).toContain('use service type NodePort');
  expect(waiting.status?.endpoint).toBeUndefined();
  const status = { loadBalancer: { ingress: [{ hostname: 'gw.example.com' }, { ip: '203.0.113.9' }] } };
  await cluster.api.mergePatch(services, { namespace, name: 'gw-milan' }, { status }, { subresource: 'status' });
  await eventually('the addresses', async () => {
    const found = (await gatewayServer())?.status?.endpoint;
    return found?.addresses?.join(' ') === 'gw.example.com 203.0.113.9' && found.port === 51_840;
  });
});

test('a changed template is rendered anew into the same objects', async () => {
  await createServer();
  const before = await child(deployments);
  await createTemplate('server', {
    ...templates.server,
    deployment: {
      spec: {
        replicas: '2',
        template: { spec: { containers: [{ name: 'wireguard', image: 'other', args: ['{{ .Spec.MTU }}'] }] } },
      },
    },
  });
  const after = await eventually('the change', async () => {
    const found = await child(deployments);
    return found.spec?.replicas === 2 ? found : undefined;
  });
  expect(after.metadata.uid).toBe(before.metadata.uid);
  expect(after.spec?.template.spec?.containers[0]).toMatchObject({ image: 'other', args: ['1340'] });
});

test.each([
  ['an absent template', { serverTemplateRef: { name: 'none', namespace: 'liqo' } }, 'TemplateMissing'],
  ['a Secret that is not there', { secretRef: { name: 'mine' } }, 'SecretMissing'],
])('%s is said by the gateway', async (_what, spec, why) => {
  await createServer(spec);
  await reason(why);
});

test('a template that cannot be rendered says what is wrong, and leaves what runs alone', async () => {
  await createServer();
  const before = await child(deployments);
  await createTemplate('server', { ...templates.server, service: { spec: { type: '{{ .Spek.Type }}' } } });
  const found = await reason('TemplateInvalid');
  expect(found.status?.conditions?.[0]?.message).toContain('field .Spek is not known');
  expect((await child(deployments)).metadata.uid).toBe(before.metadata.uid);
});

test('a named Secret is used once it holds keys; a wrong one is explained without its content', async () => {
  const keys = createWireGuardKeys();
  const data = (bytes: Uint8Array) => ({
    privateKey: Buffer.from(bytes).toString('base64'),
    publicKey: Buffer.from(keys.publicKey).toString('base64'),
  });
  const metadata = { name: 'mine', namespace, labels: { ...labels, 'networking.liqo.io/gateway-resource': 'true' } };
  await cluster.api.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    data: data(keys.privateKey.subarray(1)),
  });
  await createServer({ secretRef: { name: 'mine' } });
  const found = await reason('SecretMalformed');
  expect(found.status?.conditions?.[0]?.message).toContain('privateKey is 31 bytes long, accepted: 32');
  expect(await cluster.api.get(deployments, { namespace, name: 'gw-milan' })).toBeUndefined();
  await cluster.api.mergePatch(secrets, { namespace, name: 'mine' }, { data: data(keys.privateKey) });
  const pod = (await child(deployments)).spec?.template.spec;
  expect(pod?.volumes?.[0]?.secret?.secretName).toBe('mine');
  expect(await cluster.api.get(secrets, { namespace, name: 'gw-milan' })).toBeUndefined();
  await cluster.api.delete(secrets, { namespace, name: 'mine' });
});

test('of two gateways for one peer the younger is refused, and takes over when the older goes', async () => {
  const first = await createClient();
  await child(deployments);
  // Creation times have a resolution of one second.
  const made = Date.parse(first.metadata.creationTimestamp ?? '');
  await eventually('another second', () => Date.now() > made + 1_000);
  await createServer();
  const refused = await reason('TwoGateways');
  expect(refused.status?.conditions?.[0]?.message).toContain(`GatewayClient ${namespace}/milan`);
  expect(await cluster.api.get(networkKinds.wgGatewayServers, { namespace, name: peer })).toBeUndefined();
  await cluster.api.delete(gatewayClients, { namespace, name: peer });
  await child(services);
  await reason('NoActivePod');
});

test('a client has no Service unless it is to be dialled as well', async () => {
  await createClient();
  await child(deployments);
  expect(await cluster.api.get(services, { namespace, name: 'gw-milan' })).toBeUndefined();
  const annotations = { 'networking.isthmus.dev/listen': 'NodePort' };
  await cluster.api.mergePatch(gatewayClients, { namespace, name: peer }, { metadata: { annotations } });
  expect((await child(services)).spec?.type).toBe('NodePort');
  const found = await eventually('candidates', async () => {
    const one = await cluster.api.get(gatewayClients, { namespace, name: peer });
    return one?.metadata.annotations?.['networking.isthmus.dev/candidates'];
  });
  expect(JSON.parse(found)).toHaveLength(2);
  await cluster.api.mergePatch(
    gatewayClients,
    { namespace, name: peer },
    {
      metadata: { annotations: { 'networking.isthmus.dev/listen': null } },
    },
  );
  await eventually('no Service', async () => !(await cluster.api.get(services, { namespace, name: 'gw-milan' })));
});

test('a literal endpoint stands above everything that is found', async () => {
  await createServer({}, peer, { 'networking.isthmus.dev/endpoint': 'gw.example.com:4500' });
  await eventually('the endpoint', async () => {
    const found = (await gatewayServer())?.status?.endpoint;
    return found?.addresses?.join() === 'gw.example.com' && found.port === 4500;
  });
});

test('what somebody deletes or changes comes back, and an agent that was away catches up', async () => {
  await createServer();
  const [first, secret] = await Promise.all([child(deployments), child(secrets)]);
  await cluster.api.delete(deployments, { namespace, name: 'gw-milan' });
  await eventually('another Deployment', async () => (await child(deployments)).metadata.uid !== first.metadata.uid);
  await cluster.api.mergePatch(
    services,
    { namespace, name: 'gw-milan' },
    { spec: { selector: { 'networking.liqo.io/gateway-name': 'x' } } },
  );
  await eventually(
    'the selector',
    async () => (await child(services)).spec?.selector?.['networking.liqo.io/gateway-name'] === peer,
  );
  await stopAgent();
  await cluster.api.delete(services, { namespace, name: 'gw-milan' });
  await createKey();
  agent = startAgent();
  await child(services);
  await eventually('the Connection', () => cluster.api.get(networkKinds.connections, { namespace, name: 'gw-milan' }));
  expect((await child(secrets)).data).toEqual(secret.data);
});

test('a gateway made anew under the same name gets children of its own', async () => {
  const first = await createServer();
  await child(deployments);
  await stopAgent();
  await cluster.api.delete(gatewayServers, { namespace, name: peer });
  const second = await createServer();
  agent = startAgent();
  await eventually('owned by the new one', async () => {
    const wg = await cluster.api.get(networkKinds.wgGatewayServers, { namespace, name: peer });
    const uids = (await Promise.all([child(deployments), child(services), child(secrets)])).map(
      (one) => one.metadata.ownerReferences?.[0]?.uid,
    );
    return (
      wg?.metadata.ownerReferences?.[0]?.uid === second.metadata.uid && uids.every((uid) => uid === wg?.metadata.uid)
    );
  });
  expect(second.metadata.uid).not.toBe(first.metadata.uid);
});
