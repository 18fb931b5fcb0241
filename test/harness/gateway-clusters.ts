/** One real API server as cluster `rome` with the network controllers, and a player for kubelet, scheduler and node process. Its peer is `milan`. */

import { createNetworkControllers } from '#agent/network/network.ts';
import { agentBinding } from '#agent/peering/rights/objects.ts';
import { createWireGuardKeys } from '#agent/pki/wireguard-keys.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { agentRole } from '#shared/domain/agent-roles.ts';
import { deployments, namespaces, nodes, pods, roleBindings, secrets, services } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type KubeObject, type Pod, type ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { GatewayClient, GatewayClientSpec } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer, GatewayServerSpec } from '#shared/schema/liqo/gateway-server.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { connectAsAgent, giveAgentRights } from './agent-account.ts';
import { leaseApiServer } from './api-server-pool/lease.ts';
import { eventually } from './eventually.ts';

export const peer = 'milan';
export const namespace = 'liqo-tenant-milan';
export const peerLabels = { 'liqo.io/remote-cluster-id': peer };
const deps = { clock: systemClock, log: silentLog };
const { gatewayServers, gatewayClients, publicKeys } = networkKinds;

const port = { port: '{{ .Spec.Endpoint.Port }}', targetPort: '{{ .Spec.Endpoint.Port }}', protocol: 'UDP' };
const deployment = {
  spec: { template: { spec: { containers: [{ name: 'wireguard', image: 'isthmus.dev/agent' }] } } },
};
export const gatewayTemplates = {
  server: {
    service: {
      spec: {
        type: '{{ .Spec.Endpoint.ServiceType }}',
        ports: [{ ...port, '?nodePort': '{{ .Spec.Endpoint.NodePort }}' }],
      },
    },
    deployment,
  },
  client: { deployment },
};

export const nodeStatus = (name: string, address: string) => ({
  addresses: [
    { type: 'InternalIP', address },
    { type: 'Hostname', address: name },
  ],
  conditions: [{ type: 'Ready', status: 'True' }],
});

export interface GatewayClusters {
  readonly cluster: Cluster;
  readonly kubeconfig: string;
  startAgent(): void;
  stopAgent(): Promise<void>;
  /** Deletes gateways, keys and pods, and waits until the garbage collector has taken the rest. */
  clean(): Promise<void>;
  createTemplate(role: 'server' | 'client', spec?: object): Promise<void>;
  createServer(spec?: Partial<GatewayServerSpec>, annotations?: Record<string, string>): Promise<GatewayServer>;
  createClient(spec?: Partial<GatewayClientSpec>): Promise<GatewayClient>;
  createKey(): Promise<void>;
  server(): Promise<GatewayServer | undefined>;
  /** The object `gw-milan` of this kind, once it is there. */
  child<T extends KubeObject>(type: ResourceType<T>): Promise<T>;
  /** The GatewayServer, once condition Ready has this reason. */
  reason(wanted: string): Promise<GatewayServer>;
  runPod(name: string, node: string, ip: string, active?: boolean): Promise<void>;
  stop(): Promise<void>;
}

export async function startGatewayClusters(): Promise<GatewayClusters> {
  const apiServer = await leaseApiServer();
  const stopClients = new AbortController();
  const cluster = openCluster(await connectKubeconfig(apiServer.kubeconfig), deps, stopClients.signal);
  const { api } = cluster;
  let agent: { readonly stop: AbortController; readonly ended: Promise<unknown> } | undefined;

  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'liqo' } });
  const labels = { 'liqo.io/tenant-namespace': 'true', ...peerLabels };
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } });
  await giveAgentRights(api);
  // Made by another room of the agent, which does not run here.
  await api.apply(roleBindings, agentBinding(agentRole.tenant, namespace, 'liqo'), { fieldManager: 'test' });
  for (const [name, address] of [
    ['n1', '192.0.2.11'],
    ['n2', '192.0.2.12'],
  ] as const)
    await api.create(nodes, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      status: nodeStatus(name, address),
    } as never);

  async function leftovers(): Promise<string[]> {
    const kinds = [
      // ranges and addresses are the Configuration's, which may stay
      ...Object.values(networkKinds).filter(
        ({ group, kind, namespaced }) =>
          namespaced && group !== 'ipam.liqo.io' && !kind.endsWith('Template') && kind !== 'Configuration',
      ),
      ...[deployments, services, secrets, roleBindings, pods],
    ] as ResourceType[];
    const lists = await Promise.all(kinds.map((type) => api.list(type, { namespace })));
    const others = lists.flat().filter(({ metadata }) => metadata.name !== agentRole.tenant);
    return others.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  }

  const clusters: GatewayClusters = {
    cluster,
    kubeconfig: apiServer.kubeconfig,
    startAgent() {
      const stop = new AbortController();
      const run = async (): Promise<void> => {
        const own = openCluster(await connectAsAgent(apiServer), deps, stop.signal);
        const all = createNetworkControllers({ ...deps, cluster: own, clusterId: 'rome', systemNamespace: 'liqo' });
        await Promise.all(all.map((controller) => controller.run(stop.signal)));
      };
      agent = { stop, ended: run() };
    },
    async stopAgent() {
      agent?.stop.abort();
      await agent?.ended;
      agent = undefined;
    },
    async clean() {
      for (const type of [gatewayServers, gatewayClients, publicKeys] as ResourceType[])
        for (const { metadata } of await api.list(type, { namespace }))
          await api.delete(type, { namespace, name: metadata.name });
      for (const { metadata } of await api.list(pods, { namespace }))
        await api.delete(pods, { namespace, name: metadata.name }, { gracePeriodSeconds: 0 });
      await eventually('nothing of the gateway left', async () => {
        const left = await leftovers();
        if (left.length > 0) throw new Error(left.join(', '));
        return true;
      });
    },
    async createTemplate(role, spec = gatewayTemplates[role]) {
      const isServer = role === 'server';
      const type = networkKinds[isServer ? 'wgGatewayServerTemplates' : 'wgGatewayClientTemplates'];
      const apiVersion = apiVersionOf(type);
      const objectKind = { apiVersion, kind: isServer ? 'WgGatewayServer' : 'WgGatewayClient' };
      const metadata = { name: `wireguard-${role}`, namespace: 'liqo' };
      const template = { apiVersion, kind: type.kind, metadata, spec: { objectKind, template: { spec } } };
      await api.apply(type as ResourceType<never>, template as never, { fieldManager: 'test' });
    },
    createServer: (spec = {}, annotations = {}) =>
      api.create(gatewayServers, {
        apiVersion: apiVersionOf(gatewayServers),
        kind: 'GatewayServer',
        metadata: { name: peer, namespace, labels: peerLabels, annotations },
        spec: { endpoint: { port: 51_840, serviceType: 'NodePort' }, ...spec },
      }),
    createClient: (spec = {}) =>
      api.create(gatewayClients, {
        apiVersion: apiVersionOf(gatewayClients),
        kind: 'GatewayClient',
        metadata: { name: peer, namespace, labels: peerLabels },
        spec: { endpoint: { addresses: ['198.51.100.1'], port: 30_000, protocol: 'UDP' }, ...spec },
      }),
    async createKey() {
      await api.create(publicKeys, {
        apiVersion: apiVersionOf(publicKeys),
        kind: 'PublicKey',
        metadata: { name: peer, namespace, labels: { ...peerLabels, 'networking.liqo.io/gateway-resource': 'true' } },
        spec: { publicKey: Buffer.from(createWireGuardKeys().publicKey).toString('base64') },
      });
    },
    server: () => api.get(gatewayServers, { namespace, name: peer }),
    child: (type) =>
      eventually(`${type.kind} gw-${peer}`, () => api.get(type, { namespace, name: `gw-${peer}` }), { everyMs: 20 }),
    reason: (wanted) =>
      eventually(`reason ${wanted}`, async () => {
        const found = await clusters.server();
        const ready = found?.status?.conditions?.find(({ type }) => type === 'Ready');
        if (ready?.reason !== wanted) throw new Error(`${ready?.reason}: ${ready?.message}`);
        return found;
      }),
    async runPod(name, nodeName, ip, active = true) {
      const { metadata, spec } = (await clusters.child(deployments)).spec?.template ?? {};
      const podLabels = { ...metadata?.labels, ...(active ? { 'networking.liqo.io/active': 'true' } : {}) };
      await api.create(pods, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace, labels: podLabels },
        spec: { ...spec, nodeName, containers: spec?.containers ?? [] },
      } as Pod);
      const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }] };
      await api.mergePatch(pods, { namespace, name }, { status }, { subresource: 'status' });
    },
    async stop() {
      await clusters.stopAgent();
      stopClients.abort();
      await apiServer.stop();
    },
  };
  return clusters;
}
