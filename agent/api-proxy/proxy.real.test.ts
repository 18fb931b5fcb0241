/** A provider with a real API server: from a Tenant that names a proxy to a consumer's `kubectl`, and back to nothing. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { endpointSlices } from '#agent/network/ranges/ip/decide.ts';
import { askForCertificate } from '#agent/peering/renewal/fetch-certificate.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { proxyTokens } from '#agent/pki/proxy-token.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { namespaces, services } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type GatewayClusters, startGatewayClusters } from '#test/harness/gateway-clusters.ts';
import { createApiServerProxyController } from './controller.ts';
import { proxyServiceName } from './decide.ts';

const namespace = 'liqo-tenant-oslo';
const oslo = generateKeyPairSync('ed25519');
const at = { namespace: 'liqo', name: proxyServiceName };
let world: GatewayClusters;
let server: URL;
let leader: { stop(): Promise<void> } | undefined;

/** Added to the agent's clock. */
let shiftMs = 0;
const shifted = { ...systemClock, now: () => systemClock.now() + shiftMs };

/** One replica of the agent that leads. */
function lead(): { stop(): Promise<void> } {
  const stop = new AbortController();
  const run = async (): Promise<void> => {
    const cluster = openCluster(
      await connectKubeconfig(world.kubeconfig),
      { clock: systemClock, log: silentLog },
      stop.signal,
    );
    await createApiServerProxyController({
      cluster,
      clusterId: 'rome',
      systemNamespace: 'liqo',
      ids: systemIds,
      clock: shifted,
      log: silentLog,
      apiServerUrl: server.origin,
      upstream: { host: server.hostname, port: Number(server.port) },
      apiServer: { server, ca: undefined },
      podIp: '10.200.0.9',
      port: 0,
    }).run(stop.signal);
  };
  const ended = run();
  return {
    async stop() {
      stop.abort();
      await ended;
    },
  };
}

const endpoint = () =>
  eventually('an endpoint', async () => {
    const slice = await world.cluster.api.get(endpointSlices, at);
    return slice?.endpoints?.length === 1 ? slice.ports?.[0]?.port : undefined;
  });
const noEndpoint = () =>
  eventually('no endpoint', async () => (await world.cluster.api.get(endpointSlices, at)) === undefined);

async function consumer(port: number, privateKey: KeyObject = oslo.privateKey, name = 'oslo') {
  const config = parse(world.kubeconfig) as {
    clusters: { name: string; cluster: Record<string, string> }[];
    contexts: { context: { cluster: string } }[];
  };
  for (const { cluster } of config.clusters) cluster['proxy-url'] = `http://127.0.0.1:${port}`;
  for (const each of config.clusters) each.name = 'rome';
  for (const { context } of config.contexts) context.cluster = 'rome';
  const proxyToken = proxyTokens({
    consumer: name,
    privateKey,
    nowMs: systemClock.now,
    newId: () => systemIds.next('jti'),
  });
  const connection = await connectKubeconfig(JSON.stringify(config), { proxyToken });
  return {
    close: () => connection.close(),
    api: createKubeApi(connection, { clock: systemClock, log: silentLog }, { retries: 0 }),
  };
}

beforeAll(async () => {
  world = await startGatewayClusters();
  const [first] = (parse(world.kubeconfig) as { clusters: { cluster: { server: string } }[] }).clusters;
  server = new URL(first?.cluster.server ?? '');
  const { api } = world.cluster;
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await api.create(networkKinds.networks, {
    apiVersion: 'ipam.liqo.io/v1alpha1',
    kind: 'Network',
    metadata: {
      name: 'external-cidr',
      namespace: 'liqo',
      labels: { 'ipam.liqo.io/network-type': 'external-cidr' },
      annotations: { 'liqo.io/preinstalled': 'true' },
    },
    spec: { cidr: '10.70.0.0/16', preAllocated: 1 },
  } as never);
  world.startAgent();
  leader = lead();
}, 300_000);
afterAll(async () => {
  await leader?.stop();
  await world?.stop();
});

test('while no consumer is told to use the proxy, it has an address and no listener', async () => {
  const ip = await eventually('the address', async () => {
    const found = await world.cluster.api.get(networkKinds.ips, { namespace: 'liqo', name: 'api-server-proxy' });
    return found?.status?.ip === undefined ? undefined : found;
  });
  const service = await world.cluster.api.get(services, at);
  expect(ip.spec).toMatchObject({ ip: service?.spec?.clusterIP, masquerade: true });
  expect(ip.status?.cidr).toBe('10.70.0.0/16');
  expect(ip.metadata.labels).toMatchObject({ 'ipam.liqo.io/ip-type': 'api-server-proxy' });
  await noEndpoint();
});

test('a consumer comes through while its Tenant says so, after a change of leader, too, and is cut off with it', async () => {
  const { api } = world.cluster;
  await api.create(tenants, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'Tenant',
    metadata: { name: 'oslo', namespace, labels: { 'liqo.io/remote-cluster-id': 'oslo' } },
    spec: {
      clusterID: 'oslo',
      publicKey: Buffer.from(oslo.publicKey.export({ type: 'spki', format: 'pem' })).toString('base64'),
      proxyURL: 'http://10.71.0.9:8118',
    },
  } as never);
  await api.mergePatch(
    tenants,
    { namespace, name: 'oslo' },
    { status: { tenantNamespace: namespace, authParams: { ca: 'Y2E=', signedCRT: 'Y3J0', apiServer: server.origin } } },
    { subresource: 'status' },
  );
  const port = await endpoint();
  const oslos = await consumer(port);
  expect(await oslos.api.getPath('/readyz')).toBe('ok');
  expect((await oslos.api.list(namespaces)).length).toBeGreaterThan(3);
  const stranger = await consumer(port, generateKeyPairSync('ed25519').privateKey);
  await expect(stranger.api.getPath('/readyz')).rejects.toMatchObject({ message: expect.stringContaining('407') });

  await leader?.stop();
  leader = lead();
  await eventually('another listener', async () => (await endpoint()) !== port);
  const later = await consumer(await endpoint());
  expect(await later.api.getPath('/readyz')).toBe('ok');

  await api.delete(tenants, { namespace, name: 'oslo' });
  await noEndpoint();
  await expect(later.api.getPath('/readyz')).rejects.toMatchObject({ code: 'kube_unreachable' });
  for (const each of [oslos, stranger, later]) each.close();
});

/** As a consumer that runs Liqo comes. */
function connectWithoutToken(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port }, () =>
      socket.write(`CONNECT ${server.host} HTTP/1.1\r\nHost: ${server.host}\r\n\r\n`),
    );
    socket.once('data', (data) => {
      socket.destroy();
      resolve(data.toString('latin1').split('\r\n')[0] ?? '');
    });
    socket.once('error', reject);
  });
}

test('a Tenant says that its consumer shows no tokens, keeps that over another leader, and takes it back with the first good one', async () => {
  const { api } = world.cluster;
  const place = { namespace: 'liqo-tenant-bern', name: 'bern' };
  const bern = generateKeyPairSync('ed25519');
  const own = await eventually('the address', async () => {
    const ip = await api.get(networkKinds.ips, { namespace: 'liqo', name: 'api-server-proxy' });
    return ip?.status?.ip;
  });
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: place.namespace } });
  await api.create(tenants, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'Tenant',
    metadata: { ...place, labels: { 'liqo.io/remote-cluster-id': 'bern' } },
    spec: {
      clusterID: 'bern',
      publicKey: Buffer.from(bern.publicKey.export({ type: 'spki', format: 'pem' })).toString('base64'),
      // Its view of the external range, and the same place in it.
      proxyURL: `http://${own.replace('10.70.', '10.171.')}:8118`,
    },
  } as never);
  const authParams = { ca: 'Y2E=', signedCRT: 'Y3J0', apiServer: server.origin };
  await api.mergePatch(
    tenants,
    place,
    { status: { tenantNamespace: place.namespace, authParams } },
    { subresource: 'status' },
  );
  const told = async () => (await api.get(tenants, place))?.status?.conditions?.find((c) => c.type === 'InBandToken');
  const port = await endpoint();
  expect(await connectWithoutToken(port)).toBe('HTTP/1.1 407 Proxy Authentication Required');
  expect(await told()).toBeUndefined();
  shiftMs += 31_000;
  const condition = await eventually('the condition', async () => {
    await connectWithoutToken(port);
    return told();
  });
  expect(condition).toMatchObject({ status: 'False', reason: 'NoToken' });
  expect(condition.message).toContain('the last from');
  expect(condition.message).toContain('without --in-band');
  expect((await api.get(tenants, place))?.status?.authParams).toEqual(authParams);

  await leader?.stop();
  leader = lead();
  await eventually('another listener', async () => (await endpoint()) !== port);
  expect(await told()).toEqual(condition);
  const berns = await consumer(await endpoint(), bern.privateKey, 'bern');
  expect(await berns.api.getPath('/readyz')).toBe('ok');
  await eventually('the condition taken back', async () => (await told()) === undefined);
  berns.close();
  await api.delete(tenants, place);
  await noEndpoint();
});

test('a consumer that comes directly finds its certificate there once it has a link, and not the API server', async () => {
  const { api } = world.cluster;
  const place = { namespace: 'liqo-tenant-ghent', name: 'ghent' };
  const labels = { 'liqo.io/remote-cluster-id': 'ghent' };
  const metadata = { ...place, labels };
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: place.namespace } });
  await api.create(tenants, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'Tenant',
    metadata,
    spec: {
      clusterID: 'ghent',
      publicKey: Buffer.from(oslo.publicKey.export({ type: 'spki', format: 'pem' })).toString('base64'),
    },
  } as never);
  const authParams = { ca: 'Y2E=', signedCRT: toBase64('a certificate\n'), apiServer: server.origin };
  const status = { tenantNamespace: place.namespace, authParams };
  await api.mergePatch(tenants, place, { status }, { subresource: 'status' });
  await noEndpoint();
  await api.create(networkKinds.configurations, {
    apiVersion: 'networking.liqo.io/v1beta1',
    kind: 'Configuration',
    metadata,
    spec: { remote: { cidr: { pod: ['10.90.0.0/16'], external: ['10.91.0.0/16'] } } },
  } as never);
  const port = await endpoint();
  const token = proxyTokens({
    consumer: 'ghent',
    privateKey: oslo.privateKey,
    nowMs: systemClock.now,
    newId: () => systemIds.next('jti'),
  });
  const ask = () =>
    askForCertificate({ host: '127.0.0.1', port }, (nonce) => token('rome', nonce), new AbortController().signal);
  expect(await ask()).toBe('a certificate\n');
  const direct = await consumer(port, oslo.privateKey, 'ghent');
  await expect(direct.api.getPath('/readyz')).rejects.toMatchObject({ message: expect.stringContaining('407') });
  direct.close();
  await api.mergePatch(tenants, place, { spec: { tenantCondition: 'Drained' } });
  await noEndpoint();
  await expect(ask()).rejects.toMatchObject({ code: 'kube_unreachable' });
});
