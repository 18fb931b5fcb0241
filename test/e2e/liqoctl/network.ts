/** `liqoctl network connect`, `disconnect` and `reset`, step by step (docs/design/control-plane.md#what-does-liqoctl-need). c1 is the client side. */
import { deployments, type Service, secrets, services } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { PublicKey } from '#shared/schema/liqo/public-key.ts';
import {
  clusterIdOf,
  createOrUpdate,
  ensureTenantNamespace,
  peerLabel,
  type Target,
  tenantNamespace,
  theOne,
  type Waits,
} from './requests.ts';

const { configurations, gatewayServers, gatewayClients, publicKeys, connections, networks } = networkKinds;

export interface ConnectFlags {
  readonly serviceType: 'NodePort' | 'LoadBalancer' | 'ClusterIP';
  readonly port: number;
  readonly nodePort?: number;
  readonly loadBalancerIp?: string;
  readonly mtu: number;
  readonly wait: boolean;
  readonly clientAddress?: string;
}

export interface End extends Target {
  readonly id: string;
  readonly namespace: string;
}

export async function ranges({ api, liqoNamespace }: Target): Promise<{ pod: string[]; external: string[] }> {
  const of = async (type: string) =>
    (await api.list(networks, { namespace: liqoNamespace, labelSelector: `ipam.liqo.io/network-type=${type}` })).map(
      ({ status, metadata }) => {
        if (status?.cidr === undefined) throw new Error(`Network ${metadata.name} has no status.cidr`);
        return status.cidr;
      },
    );
  const [pod, external] = [await of('pod-cidr'), await of('external-cidr')];
  if (pod.length === 0 || external.length !== 1) throw new Error('networks of the cluster are missing');
  return { pod, external };
}

export const configurationOf = ({ api, namespace }: End, peer: string): Promise<Configuration | undefined> =>
  theOne(api, configurations, namespace, `${peerLabel}=${peer}`);

export function isConfigured(found: Configuration | undefined): boolean {
  const condition = found?.status?.conditions?.find(({ type }) => type === 'NetworkCIDRsConfigured');
  return condition?.status === 'True' && condition.observedGeneration === found?.metadata.generation;
}

interface ServiceTemplate {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly service: { readonly spec: { readonly ports: readonly object[] } & object } };
    };
  };
}

/** Both have to be there, and that of the server has a place for the node port or the address that was asked for. */
async function validateTemplates(c1: Target, c2: Target, flags: ConnectFlags): Promise<void> {
  const serverRef = { namespace: c2.liqoNamespace, name: 'wireguard-server' };
  const server = await c2.api.get(networkKinds.wgGatewayServerTemplates, serverRef);
  if (server === undefined) throw new Error('gateway server template not found');
  const service = (server as unknown as ServiceTemplate).spec.template.spec.service.spec;
  const demand = (fields: object, name: string): void => {
    if (!(name in fields) && !(`?${name}` in fields)) throw new Error(`${name} is missing in the server template`);
  };
  if (flags.serviceType === 'NodePort' && flags.nodePort) demand(service.ports[0] ?? {}, 'nodePort');
  if (flags.serviceType === 'LoadBalancer' && flags.loadBalancerIp) demand(service, 'loadBalancerIP');
  const clientRef = { namespace: c1.liqoNamespace, name: 'wireguard-client' };
  if ((await c1.api.get(networkKinds.wgGatewayClientTemplates, clientRef)) === undefined)
    throw new Error('gateway client template not found');
}

export async function publicKeyIn(
  { api }: Target,
  ref: { namespace?: string | undefined; name?: string | undefined } | undefined,
) {
  if (!ref?.name) return undefined;
  const secret = await api.get(secrets, { namespace: ref.namespace ?? '', name: ref.name });
  return secret?.data?.publicKey;
}

const owner = (type: ResourceType, { metadata }: KubeObject) => ({
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  name: metadata.name,
  uid: metadata.uid ?? '',
});

/** The one that is there for the peer keeps its name. */
async function ensureKey(end: End, peer: string, publicKey: string, gateway: KubeObject, type: ResourceType) {
  const known = await theOne(end.api, publicKeys, end.namespace, `${peerLabel}=${peer}`);
  const key: PublicKey = {
    apiVersion: apiVersionOf(publicKeys),
    kind: 'PublicKey',
    metadata: {
      name: known?.metadata.name ?? peer,
      namespace: end.namespace,
      labels: { [peerLabel]: peer, 'networking.liqo.io/gateway-resource': 'true' },
      ownerReferences: [owner(type, gateway)],
    },
    spec: { publicKey },
  };
  await createOrUpdate(end.api, publicKeys, key);
}

async function openEnds(c1: Target, c2: Target): Promise<readonly [End, End]> {
  const [id1, id2] = await Promise.all([clusterIdOf(c1), clusterIdOf(c2)]);
  const [n1, n2] = [await ensureTenantNamespace(c1, id2), await ensureTenantNamespace(c2, id1)];
  return [
    { ...c1, id: id1, namespace: n1 },
    { ...c2, id: id2, namespace: n2 },
  ];
}

export async function networkConnect(t1: Target, t2: Target, flags: ConnectFlags, waits: Waits): Promise<void> {
  const [c1, c2] = await openEnds(t1, t2);
  const [r1, r2] = await Promise.all([ranges(c1), ranges(c2)]);
  for (const [end, peer, cidr] of [
    [c1, c2, r2],
    [c2, c1, r1],
  ] as const) {
    const known = await configurationOf(end, peer.id);
    await createOrUpdate(end.api, configurations, {
      apiVersion: apiVersionOf(configurations),
      kind: 'Configuration',
      metadata: {
        name: known?.metadata.name ?? peer.id,
        namespace: end.namespace,
        labels: { [peerLabel]: peer.id },
      },
      spec: { remote: { cidr } },
    });
  }
  for (const [end, peer] of [
    [c1, c2],
    [c2, c1],
  ] as const)
    await waits.until('Configuration', async () => isConfigured(await configurationOf(end, peer.id)));
  await validateTemplates(c1, c2, flags);
  for (const [end, peer] of [
    [c1, c2],
    [c2, c1],
  ] as const)
    if (!isConfigured(await configurationOf(end, peer.id))) throw new Error('the network is not initialized');
  if (await theOne(c1.api, gatewayServers, c1.namespace, `${peerLabel}=${c2.id}`)) return;
  if (await theOne(c2.api, gatewayClients, c2.namespace, `${peerLabel}=${c1.id}`)) return;
  const server = await connectServer(c1, c2, flags, waits);
  const client = await connectClient(c1, c2, server, flags, waits);
  const k2 = await waits.until('secretRef of the server', async () =>
    publicKeyIn(c2, (await c2.api.get(gatewayServers, refOf(server)))?.status?.secretRef),
  );
  await ensureKey(c1, c2.id, k2, client, gatewayClients);
  const k1 = await waits.until('secretRef of the client', async () =>
    publicKeyIn(c1, (await c1.api.get(gatewayClients, refOf(client)))?.status?.secretRef),
  );
  await ensureKey(c2, c1.id, k1, server, gatewayServers);
  if (!flags.wait) return;
  const link = (end: End, peer: End) => theOne(end.api, connections, end.namespace, `${peerLabel}=${peer.id}`);
  await waits.until('Connection of the server', () => link(c2, c1));
  await waits.until('Connection of the client', () => link(c1, c2));
  await waits.until('client Connected', async () => (await link(c1, c2))?.status?.value === 'Connected');
  await waits.until('server Connected', async () => (await link(c2, c1))?.status?.value === 'Connected');
}

/** Then the GatewayServer is recreated, so that clients hear of the new endpoint. */
function isExposedElse({ spec }: Service, flags: ConnectFlags): boolean {
  const [port] = spec?.ports ?? [];
  return (
    spec?.type !== flags.serviceType ||
    port?.port !== flags.port ||
    (Boolean(flags.nodePort) && port.nodePort !== flags.nodePort) ||
    (spec.loadBalancerIP ?? '') !== (flags.loadBalancerIp ?? '')
  );
}

/** Go sends the reference to the Secret with the keys even where none is named. */
const noKeys = { secretRef: {} } as const;

async function connectServer(c1: End, c2: End, flags: ConnectFlags, waits: Waits): Promise<GatewayServer> {
  const known = await theOne(c2.api, gatewayServers, c2.namespace, `${peerLabel}=${c1.id}`);
  const name = known?.metadata.name ?? c1.id;
  const service = await c2.api.get(services, { namespace: c2.namespace, name: `gw-${name}` });
  const isMadeAnew = service !== undefined && isExposedElse(service, flags);
  if (isMadeAnew) await c2.api.delete(gatewayServers, { namespace: c2.namespace, name });
  const server = await createOrUpdate(c2.api, gatewayServers, {
    apiVersion: apiVersionOf(gatewayServers),
    kind: 'GatewayServer',
    metadata: { name, namespace: c2.namespace, labels: { [peerLabel]: c1.id } },
    spec: {
      mtu: flags.mtu,
      endpoint: {
        port: flags.port,
        serviceType: flags.serviceType,
        ...(flags.nodePort ? { nodePort: flags.nodePort } : {}),
        ...(flags.loadBalancerIp ? { loadBalancerIP: flags.loadBalancerIp } : {}),
      },
      ...(known === undefined || isMadeAnew ? noKeys : {}),
      serverTemplateRef: {
        name: 'wireguard-server',
        namespace: c2.liqoNamespace,
        kind: 'WgGatewayServerTemplate',
        apiVersion: 'networking.liqo.io/v1beta1',
      },
    },
  });
  await waits.until('server gateway Deployment', () => isReady(c2, name));
  return waits.until('server endpoint', async () => {
    const found = await c2.api.get(gatewayServers, refOf(server));
    return (found?.status?.endpoint?.addresses?.length ?? 0) > 0 ? found : undefined;
  });
}

const isReady = async ({ api, namespace }: End, name: string): Promise<boolean> =>
  ((await api.get(deployments, { namespace, name: `gw-${name}` }))?.status?.readyReplicas ?? 0) > 0;

async function connectClient(
  c1: End,
  c2: End,
  { status }: GatewayServer,
  { mtu, clientAddress }: ConnectFlags,
  waits: Waits,
): Promise<GatewayClient> {
  const known = await theOne(c1.api, gatewayClients, c1.namespace, `${peerLabel}=${c2.id}`);
  const name = known?.metadata.name ?? c2.id;
  const { addresses = [], port, protocol } = status?.endpoint ?? {};
  if (port === undefined || protocol === undefined) throw new Error('liqoctl would crash: endpoint without protocol');
  const client = await createOrUpdate(c1.api, gatewayClients, {
    apiVersion: apiVersionOf(gatewayClients),
    kind: 'GatewayClient',
    metadata: { name, namespace: c1.namespace, labels: { [peerLabel]: c2.id } },
    spec: {
      mtu,
      endpoint: { addresses: clientAddress === undefined ? [...addresses] : [clientAddress], port, protocol },
      ...(known === undefined ? noKeys : {}),
      clientTemplateRef: {
        name: 'wireguard-client',
        namespace: c1.liqoNamespace,
        kind: 'WgGatewayClientTemplate',
        apiVersion: 'networking.liqo.io/v1beta1',
      },
    },
  });
  await waits.until('client gateway Deployment', () => isReady(c1, name));
  return client;
}

async function removeByLabel(
  target: Target,
  type: ResourceType<KubeObject>,
  namespace: string,
  peer: string,
): Promise<void> {
  const found = await theOne(target.api, type, namespace, `${peerLabel}=${peer}`);
  if (found !== undefined) await target.api.delete(type, refOf(found));
}

/** Of each of `types` in turn, first on c1, then on c2; what is absent counts as deleted. */
async function removeAll(c1: Target, c2: Target, types: readonly ResourceType[]): Promise<void> {
  const [id1, id2] = await Promise.all([clusterIdOf(c1), clusterIdOf(c2)]);
  const ends = [
    [c1, await tenantNamespace(c1, id2), id2],
    [c2, await tenantNamespace(c2, id1), id1],
  ] as const;
  for (const type of types as readonly ResourceType<KubeObject>[])
    for (const [end, namespace, peer] of ends) await removeByLabel(end, type, namespace, peer);
}

export const networkDisconnect = (c1: Target, c2: Target): Promise<void> =>
  removeAll(c1, c2, [gatewayClients, gatewayServers]);

export async function networkReset(c1: Target, c2: Target): Promise<void> {
  await networkDisconnect(c1, c2);
  await removeAll(c1, c2, [configurations]);
}
