/** The end of a peering whose consumer reaches the API server through the proxy at the provider, on two real API servers; the link is played by a line. */
import { createPrivateKey } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApiServerProxyController } from '#agent/api-proxy/controller.ts';
import { proxyTokens } from '#agent/pki/proxy-token.ts';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { configMaps, secrets } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/domain/kube-object.ts';
import {
  authenticationKeysSecret,
  clusterIdConfigMap,
  finalizer,
  label,
  name,
  systemNamespace,
} from '#shared/domain/liqo-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { freePort } from '#test/aws/free-port.ts';
import { unpeer } from '#test/e2e/liqoctl/peer.ts';
import { eventually } from '#test/harness/eventually.ts';
import { startTcpProxy, type TcpProxy } from '#test/harness/tcp-proxy.ts';
import { introduce, nothingLeft, presentIdentity, presentTenant, virtualNodeAppears } from '../peering/broker-part.ts';
import { type Pair, startPair } from '../peering/clusters.ts';

const { configurations, gatewayClients } = networkKinds;
const [here, there] = [name.tenantNamespace('milan'), name.tenantNamespace('rome')];
let pair: Pair;
let line: TcpProxy;

beforeAll(async () => {
  const port = await freePort();
  line = await startTcpProxy(port);
  pair = await startPair(
    async (deps) => {
      if (deps.clusterId !== 'milan') return [];
      const { apiServerUrl } = deps.config;
      const { hostname, port: upstreamPort } = new URL(apiServerUrl);
      const upstream = { host: hostname, port: Number(upstreamPort) };
      const apiServer = { server: new URL(apiServerUrl), ca: deps.config.apiServerCa };
      const place = {
        systemNamespace,
        apiServerUrl,
        upstream,
        apiServer,
        podIp: '10.200.0.9',
        port,
        host: '127.0.0.1',
      };
      return [createApiServerProxyController({ ...deps, ...place, ids: systemIds })];
    },
    async (kubeconfig, signal) => {
      const ref = { namespace: systemNamespace, name: authenticationKeysSecret };
      const text = Buffer.from((await pair.consumer.api.get(secrets, ref))?.data?.privateKey ?? '', 'base64');
      const { clock } = pair;
      const newId = () => systemIds.next('jti');
      const proxyToken = proxyTokens({
        consumer: 'rome',
        privateKey: createPrivateKey(text.toString()),
        nowMs: () => clock.now(),
        newId,
      });
      return createConnectCluster({ clock, log: silentLog, proxyToken })(kubeconfig, signal);
    },
  );
  for (const { api, id } of [pair.consumer, pair.provider])
    await api.create(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: clusterIdConfigMap,
        namespace: systemNamespace,
        labels: { 'app.kubernetes.io/name': 'clusterid-configmap' },
      },
      data: { CLUSTER_ID: id },
    });
}, 900_000);
afterAll(async () => {
  await pair?.stop();
  await line?.close();
});

/** The consumer's half of the link: the proxy is an address in what it calls the ranges of the provider. */
async function connect(): Promise<void> {
  const { api } = pair.consumer;
  const metadata = { name: 'milan', namespace: here, labels: { [label.remoteClusterId]: 'milan' } };
  const remote = { cidr: { pod: ['10.200.0.0/16'], external: ['10.70.0.0/16'] } };
  const views = { cidr: { pod: ['10.81.0.0/16'], external: ['127.0.0.0/16'] } };
  const make = <T extends KubeObject>(type: ResourceType<T>, spec: object): Promise<T> =>
    api.create(type, { apiVersion: apiVersionOf(type), kind: type.kind, metadata, spec } as never);
  await make(configurations, { remote });
  await api.mergePatch(configurations, metadata, { status: { remote: views } }, { subresource: 'status' });
  await make(gatewayClients, { endpoint: { addresses: ['192.0.2.21'], port: 51_840, protocol: 'UDP' } });
  line.newConnections('pass');
}

async function peerInBand(): Promise<void> {
  await introduce(pair);
  await connect();
  await presentTenant(pair, `http://127.0.0.1:${line.port}`);
  await presentIdentity(pair);
  await virtualNodeAppears(pair);
  await eventually('the Renew of the consumer at the provider', async () => {
    const [copy] = await pair.provider.api.list(renews, { namespace: there });
    const foreign = await pair.consumer.api.get(foreignClusters, { name: 'milan' });
    return copy !== undefined && foreign?.status?.role === 'Provider';
  });
  expect(line.opened()).toBeGreaterThan(0);
}

/** Acts just before the consumer's object of a kind is deleted. */
const beforeDeletion = (api: KubeApi, acts: Readonly<Record<string, () => void | Promise<void>>>): KubeApi =>
  new Proxy(api, {
    get(target, method: keyof KubeApi) {
      const call = (target[method] as (...args: unknown[]) => Promise<unknown>).bind(target);
      if (method !== 'delete') return call;
      return async (type: ResourceType, ...rest: unknown[]) => {
        await acts[type.plural]?.();
        return call(type, ...rest);
      };
    },
  });

const credentials = { namespace: here, name: 'kubeconfig-controlplane-milan' };
const endings = [
  // Less than a request takes to be given up.
  {
    how: 'with requests under way',
    meanwhile: async () => {},
    afterwards: () => eventually('no credentials', async () => (await held()) === undefined, { withinMs: 7_000 }),
  },
  {
    how: 'and the agent was started again',
    meanwhile: () => pair.consumer.stopAgent(),
    afterwards: () => pair.consumer.startAgent(),
  },
];
const held = () => pair.consumer.api.get(secrets, credentials);

test.each(endings)(
  'liqoctl unpeer --delete-namespaces ends although the network went first, $how',
  async ({ meanwhile, afterwards }) => {
    await peerInBand();
    const api = beforeDeletion(pair.consumer.api, {
      identities() {
        line.newConnections('stall');
        line.stall();
      },
      async gatewayclients() {
        expect((await held())?.metadata.finalizers).toEqual([finalizer.replicatorSecret]);
        await meanwhile();
      },
      async namespaces() {
        await afterwards();
      },
    });
    const target = (of: KubeApi) => ({ api: of, liqoNamespace: systemNamespace, pollMs: 100 });
    const waited = await unpeer(target(api), target(pair.provider.api), { deleteNamespaces: true });
    expect(waited.filter(({ ms }) => ms > 30_000)).toEqual([]);
    await nothingLeft(pair);
  },
  180_000,
);

test('a consumer whose Tenant went, and the proxy with it, is free of its credentials while the link stays', async () => {
  await peerInBand();
  const { consumer, provider } = pair;
  await consumer.api.delete(resourceSlices, { namespace: here, name: 'milan' });
  const slice = () => consumer.api.get(resourceSlices, { namespace: here, name: 'milan' });
  await eventually('the slice to go', async () => (await slice()) === undefined);
  await provider.api.delete(tenants, { namespace: there, name: 'rome' });
  await eventually('nothing at the provider', async () => (await provider.api.list(renews)).length === 0);
  await consumer.api.delete(identities, { namespace: here, name: 'controlplane-milan' });
  await eventually(
    'nothing at the consumer',
    async () => {
      const kubeconfigs = await consumer.api.list(secrets, { labelSelector: label.identityType });
      return (await consumer.api.list(renews)).length + kubeconfigs.length === 0;
    },
    { withinMs: 45_000 },
  );
  expect(await consumer.api.get(gatewayClients, { namespace: here, name: 'milan' })).toBeDefined();
}, 120_000);
