/** From GatewayServer and GatewayClient to pods, Service, keys and Connection on a real API server; kubelet, scheduler and load balancer are played. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createFacts } from '#agent/broker/sync/facts.ts';
import { createWireGuardKeys, publicKeyOf } from '#agent/pki/wireguard-keys.ts';
import { deployments, nodes, pods, secrets, services } from '#shared/domain/core-kinds.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  type GatewayClusters,
  gatewayTemplates,
  namespace,
  nodeStatus,
  peer,
  peerLabels,
  startGatewayClusters,
} from '#test/harness/gateway-clusters.ts';

const { gatewayClients, gatewayServers } = networkKinds;
let world: GatewayClusters;

beforeAll(async () => {
  world = await startGatewayClusters();
}, 300_000);
afterAll(async () => await world?.stop());

beforeEach(async () => {
  await world.createTemplate('server');
  await world.createTemplate('client');
  world.startAgent();
});
afterEach(async () => {
  // The garbage collector may not know our kinds in its first half minute.
  await world.clean().catch(() => world.clean());
  await world.stopAgent();
});

test('a GatewayServer becomes keys, pods and a Service; its endpoint names every ready node, the one of the active pod first', async () => {
  await world.createServer({
    serviceLabels: { tier: 'edge' },
    endpoint: { port: 51_840, serviceType: 'NodePort', nodePort: 30_840 },
  });
  const [deployment, service, secret] = await Promise.all([
    world.child(deployments),
    world.child(services),
    world.child(secrets),
  ]);
  expect(service.spec).toMatchObject({
    type: 'NodePort',
    ports: [{ port: 51_840, nodePort: 30_840, protocol: 'UDP' }],
  });
  expect(service.metadata.labels).toMatchObject({ tier: 'edge' });
  expect(service.spec?.selector).toMatchObject({
    'networking.liqo.io/active': 'true',
    'networking.liqo.io/gateway-name': peer,
  });
  expect(secret.metadata.labels).toMatchObject({ ...peerLabels, 'networking.liqo.io/gateway-resource': 'true' });
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
  const first = await world.reason('NoActivePod');
  expect(first.status?.endpoint).toEqual({ addresses: ['192.0.2.11', '192.0.2.12'], port: 30_840, protocol: 'UDP' });

  await world.runPod('p1', 'n2', '10.200.2.5');
  const found = await world.reason('PublicKeyMissing');
  expect(found.status).toMatchObject({
    serverRef: { kind: 'WgGatewayServer', name: peer, namespace },
    endpoint: { addresses: ['192.0.2.12', '192.0.2.11'], port: 30_840, protocol: 'UDP' },
    secretRef: { name: 'gw-milan', namespace },
    internalEndpoint: { ip: '10.200.2.5', node: 'n2' },
  });
  await eventually('candidates and the node port', async () => {
    const annotations = (await world.server())?.metadata.annotations;
    return (
      annotations?.['networking.isthmus.dev/candidates'] === '["192.0.2.12:30840","192.0.2.11:30840"]' &&
      annotations['networking.isthmus.dev/node-port'] === '30840'
    );
  });

  await world.createKey();
  await world.reason('Ready');
  const connection = await eventually('the Connection', async () => {
    const one = await world.cluster.api.get(networkKinds.connections, { namespace, name: 'gw-milan' });
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
  await world.createServer();
  await world.runPod('p1', 'n1', '10.200.1.5');
  await world.createKey();
  await world.reason('Ready');
  const endpoint = async () => (await world.server())?.status?.endpoint?.addresses?.join(' ');
  const set = (name: string, status: object) =>
    world.cluster.api.mergePatch(nodes, { name }, { status }, { subresource: 'status' });
  await set('n2', { conditions: [{ type: 'Ready', status: 'False' }] });
  await eventually('the node that is not ready is left out', async () => (await endpoint()) === '192.0.2.11');
  await set('n2', {
    conditions: [{ type: 'Ready', status: 'True' }],
    addresses: [{ type: 'ExternalIP', address: '203.0.113.2' }],
  });
  await eventually('a better address counts', async () => (await endpoint()) === '192.0.2.11 203.0.113.2');
  await world.runPod('p2', 'n2', '10.200.2.5', false);
  await world.cluster.api.mergePatch(
    pods,
    { namespace, name: 'p1' },
    { metadata: { labels: { 'networking.liqo.io/active': null } } },
  );
  await world.reason('NoActivePod');
  await world.cluster.api.mergePatch(
    pods,
    { namespace, name: 'p2' },
    { metadata: { labels: { 'networking.liqo.io/active': 'true' } } },
  );
  const moved = await world.reason('Ready');
  expect(moved.status?.internalEndpoint).toEqual({ ip: '10.200.2.5', node: 'n2' });
  await eventually('its node comes first', async () => (await endpoint()) === '203.0.113.2 192.0.2.11');
  await set('n2', nodeStatus('n2', '192.0.2.12'));
});

test('a load balancer without address is said; its address is published when it comes, and the broker told that there are such', async () => {
  const facts = createFacts({ cluster: world.cluster, agentVersion: '1', apiServerUrl: '', apiServerCa: '' });
  await facts.ready(AbortSignal.timeout(60_000));
  await world.createServer({ endpoint: { port: 51_840, serviceType: 'LoadBalancer' } });
  const waiting = await world.reason('NoLoadBalancerAddress');
  expect(waiting.status?.conditions?.[0]?.message).toContain('use service type NodePort');
  expect(waiting.status?.endpoint).toBeUndefined();
  expect(facts.read().network).not.toHaveProperty('loadBalancer');
  const status = { loadBalancer: { ingress: [{ hostname: 'gw.example.com' }, { ip: '203.0.113.9' }] } };
  await world.cluster.api.mergePatch(services, { namespace, name: 'gw-milan' }, { status }, { subresource: 'status' });
  await eventually('the addresses', async () => {
    const found = (await world.server())?.status?.endpoint;
    return found?.addresses?.join(' ') === 'gw.example.com 203.0.113.9' && found.port === 51_840;
  });
  await eventually('the broker is told', () => facts.read().network?.loadBalancer === true);
});

test('a changed template is rendered again into the same objects', async () => {
  await world.createServer();
  const before = await world.child(deployments);
  await world.createTemplate('server', {
    ...gatewayTemplates.server,
    deployment: {
      spec: {
        replicas: '3',
        template: { spec: { containers: [{ name: 'wireguard', image: 'other', args: ['{{ .Spec.MTU }}'] }] } },
      },
    },
  });
  const after = await eventually('the change', async () => {
    const found = await world.child(deployments);
    return found.spec?.replicas === 3 ? found : undefined;
  });
  expect(after.metadata.uid).toBe(before.metadata.uid);
  expect(after.spec?.template.spec?.containers[0]).toMatchObject({ image: 'other', args: ['1340'] });
});

test.each([
  ['an absent template', { serverTemplateRef: { name: 'none', namespace: 'liqo' } }, 'TemplateMissing'],
  ['a Secret that is not there', { secretRef: { name: 'mine' } }, 'SecretMissing'],
])('%s is said by the gateway', async (_what, spec, why) => {
  await world.createServer(spec);
  await world.reason(why);
});

test('a template that cannot be rendered says what is wrong, and leaves what runs alone', async () => {
  await world.createServer();
  const before = await world.child(deployments);
  await world.createTemplate('server', { ...gatewayTemplates.server, service: { spec: { type: '{{ .Spek.Type }}' } } });
  const found = await world.reason('TemplateInvalid');
  expect(found.status?.conditions?.[0]?.message).toContain('field .Spek is not known');
  expect((await world.child(deployments)).metadata.uid).toBe(before.metadata.uid);
});

test('a named Secret is used once it holds keys; a wrong one is explained without its content', async () => {
  const keys = createWireGuardKeys();
  const data = (bytes: Uint8Array) => ({
    privateKey: Buffer.from(bytes).toString('base64'),
    publicKey: Buffer.from(keys.publicKey).toString('base64'),
  });
  const metadata = {
    name: 'mine',
    namespace,
    labels: { ...peerLabels, 'networking.liqo.io/gateway-resource': 'true' },
  };
  await world.cluster.api.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    data: data(keys.privateKey.subarray(1)),
  });
  await world.createServer({ secretRef: { name: 'mine' } });
  const found = await world.reason('SecretMalformed');
  expect(found.status?.conditions?.[0]?.message).toContain('privateKey is 31 bytes long, accepted: 32');
  expect(await world.cluster.api.get(deployments, { namespace, name: 'gw-milan' })).toBeUndefined();
  await world.cluster.api.mergePatch(secrets, { namespace, name: 'mine' }, { data: data(keys.privateKey) });
  const pod = (await world.child(deployments)).spec?.template.spec;
  expect(pod?.volumes?.[0]?.secret?.secretName).toBe('mine');
  expect(await world.cluster.api.get(secrets, { namespace, name: 'gw-milan' })).toBeUndefined();
  await world.cluster.api.delete(secrets, { namespace, name: 'mine' });
});

test('of two gateways for one peer the younger is refused, and takes over when the older goes', async () => {
  const first = await world.createClient();
  await world.child(deployments);
  // Creation times have a resolution of one second.
  const made = Date.parse(first.metadata.creationTimestamp ?? '');
  await eventually('another second', () => Date.now() > made + 1_000);
  await world.createServer();
  const refused = await world.reason('TwoGateways');
  expect(refused.status?.conditions?.[0]?.message).toContain(`GatewayClient ${namespace}/milan`);
  expect(await world.cluster.api.get(networkKinds.wgGatewayServers, { namespace, name: peer })).toBeUndefined();
  await world.cluster.api.delete(gatewayClients, { namespace, name: peer });
  await world.child(services);
  await world.reason('NoActivePod');
});

test('a client has no Service unless it is to be dialled as well', async () => {
  await world.createClient();
  await world.child(deployments);
  expect(await world.cluster.api.get(services, { namespace, name: 'gw-milan' })).toBeUndefined();
  const annotations = { 'networking.isthmus.dev/listen': 'NodePort' };
  await world.cluster.api.mergePatch(gatewayClients, { namespace, name: peer }, { metadata: { annotations } });
  expect((await world.child(services)).spec?.type).toBe('NodePort');
  const found = await eventually('candidates', async () => {
    const one = await world.cluster.api.get(gatewayClients, { namespace, name: peer });
    return one?.metadata.annotations?.['networking.isthmus.dev/candidates'];
  });
  expect(JSON.parse(found)).toHaveLength(2);
  await world.cluster.api.mergePatch(
    gatewayClients,
    { namespace, name: peer },
    {
      metadata: { annotations: { 'networking.isthmus.dev/listen': null } },
    },
  );
  await eventually('no Service', async () => !(await world.cluster.api.get(services, { namespace, name: 'gw-milan' })));
});

test('a literal endpoint stands above everything that is found', async () => {
  await world.createServer({}, { 'networking.isthmus.dev/endpoint': 'gw.example.com:4500' });
  await eventually('the endpoint', async () => {
    const found = (await world.server())?.status?.endpoint;
    return found?.addresses?.join() === 'gw.example.com' && found.port === 4500;
  });
});

test('objects that were deleted or changed are restored, and an agent that was away catches up', async () => {
  await world.createServer();
  const [first, secret] = await Promise.all([world.child(deployments), world.child(secrets)]);
  await world.cluster.api.delete(deployments, { namespace, name: 'gw-milan' });
  await eventually(
    'another Deployment',
    async () => (await world.child(deployments)).metadata.uid !== first.metadata.uid,
  );
  await world.cluster.api.mergePatch(
    services,
    { namespace, name: 'gw-milan' },
    { spec: { selector: { 'networking.liqo.io/gateway-name': 'x' } } },
  );
  await eventually(
    'the selector',
    async () => (await world.child(services)).spec?.selector?.['networking.liqo.io/gateway-name'] === peer,
  );
  await world.stopAgent();
  await world.cluster.api.delete(services, { namespace, name: 'gw-milan' });
  await world.createKey();
  world.startAgent();
  await world.child(services);
  await eventually('the Connection', () =>
    world.cluster.api.get(networkKinds.connections, { namespace, name: 'gw-milan' }),
  );
  expect((await world.child(secrets)).data).toEqual(secret.data);
});

test('a gateway recreated under the same name gets children of its own', async () => {
  const first = await world.createServer();
  await world.child(deployments);
  await world.stopAgent();
  await world.cluster.api.delete(gatewayServers, { namespace, name: peer });
  const second = await world.createServer();
  world.startAgent();
  await eventually('owned by the new one', async () => {
    const wg = await world.cluster.api.get(networkKinds.wgGatewayServers, { namespace, name: peer });
    const uids = (await Promise.all([world.child(deployments), world.child(services), world.child(secrets)])).map(
      (one) => one.metadata.ownerReferences?.[0]?.uid,
    );
    return (
      wg?.metadata.ownerReferences?.[0]?.uid === second.metadata.uid && uids.every((uid) => uid === wg?.metadata.uid)
    );
  });
  expect(second.metadata.uid).not.toBe(first.metadata.uid);
});
