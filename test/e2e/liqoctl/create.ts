/** `liqoctl create` of network objects, `delete`, and `generate configuration|publickey` (docs/design/control-plane.md#what-does-liqoctl-need). */
import { apiVersionOf, type KubeObject, type ObjectRef, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { PublicKey } from '#shared/schema/liqo/public-key.ts';
import { publicKeyIn, ranges } from './network.ts';
import { clusterIdOf, createOrUpdate, peerLabel, type Target, type Waits } from './requests.ts';

const { configurations, gatewayServers, gatewayClients, publicKeys } = networkKinds;

const within = (ref: ObjectRef, peer: string) => ({ ...ref, labels: { [peerLabel]: peer } });

export async function createConfiguration(
  { api }: Target,
  ref: ObjectRef,
  peer: string,
  { podCidr, externalCidr }: { readonly podCidr: string; readonly externalCidr: string },
  waits: Waits,
): Promise<Configuration> {
  const spec = { remote: { cidr: { pod: [podCidr], external: [externalCidr] } } };
  const metadata = within(ref, peer);
  await createOrUpdate(api, configurations, {
    apiVersion: apiVersionOf(configurations),
    kind: 'Configuration',
    metadata,
    spec,
  });
  return waits.until('status.remote', async () => {
    const found = await api.get(configurations, ref);
    return found?.status?.remote === undefined ? undefined : found;
  });
}

/** `generate configuration`: what describes this cluster, for its peer to apply. */
export async function generateConfiguration(target: Target, namespace: string): Promise<Configuration> {
  const id = await clusterIdOf(target);
  return {
    apiVersion: apiVersionOf(configurations),
    kind: 'Configuration',
    metadata: within({ name: id, namespace }, id),
    spec: { remote: { cidr: await ranges(target) } },
  };
}

export async function createGatewayServer(
  target: Target,
  ref: ObjectRef,
  peer: string,
  { port, nodePort }: { readonly port: number; readonly nodePort: number },
  waits: Waits,
) {
  const template = { name: 'wireguard-server', namespace: target.liqoNamespace, kind: 'WgGatewayServerTemplate' };
  await createOrUpdate(target.api, gatewayServers, {
    apiVersion: apiVersionOf(gatewayServers),
    kind: 'GatewayServer',
    metadata: within(ref, peer),
    spec: {
      mtu: 1_340,
      endpoint: { port, serviceType: 'NodePort', nodePort },
      secretRef: {},
      serverTemplateRef: { ...template, apiVersion: 'networking.liqo.io/v1beta1' },
    },
  });
  return waits.until('status.endpoint and status.serverRef', async () => {
    const found = await target.api.get(gatewayServers, ref);
    return found?.status?.endpoint === undefined || found.status.serverRef === undefined ? undefined : found;
  });
}

export async function createGatewayClient(
  target: Target,
  ref: ObjectRef,
  peer: string,
  endpoint: { readonly addresses: string[]; readonly port: number; readonly protocol: 'UDP' },
  waits: Waits,
) {
  const template = { name: 'wireguard-client', namespace: target.liqoNamespace, kind: 'WgGatewayClientTemplate' };
  await createOrUpdate(target.api, gatewayClients, {
    apiVersion: apiVersionOf(gatewayClients),
    kind: 'GatewayClient',
    metadata: within(ref, peer),
    spec: {
      mtu: 1_340,
      endpoint,
      secretRef: {},
      clientTemplateRef: { ...template, apiVersion: 'networking.liqo.io/v1beta1' },
    },
  });
  return waits.until('status.clientRef', async () => {
    const found = await target.api.get(gatewayClients, ref);
    return found?.status?.clientRef === undefined ? undefined : found;
  });
}

const publicKey = (ref: ObjectRef, peer: string, key: string): PublicKey => ({
  apiVersion: apiVersionOf(publicKeys),
  kind: 'PublicKey',
  metadata: { ...ref, labels: { [peerLabel]: peer, 'networking.liqo.io/gateway-resource': 'true' } },
  spec: { publicKey: key },
});

export const createPublicKey = (target: Target, ref: ObjectRef, peer: string, key: string): Promise<PublicKey> =>
  createOrUpdate(target.api, publicKeys, publicKey(ref, peer, key));

/** `generate publickey`: of the own gateway, for the peer to apply. */
export async function generatePublicKey(
  target: Target,
  gateway: ObjectRef,
  type: 'server' | 'client',
  namespace: string,
): Promise<PublicKey> {
  const kind = (type === 'server' ? gatewayServers : gatewayClients) as ResourceType<KubeObject>;
  const found = (await target.api.get(kind, gateway)) as
    | { readonly status?: { readonly secretRef?: { readonly namespace?: string; readonly name?: string } } }
    | undefined;
  const key = await publicKeyIn(target, found?.status?.secretRef);
  if (key === undefined) throw new Error(`gateway ${gateway.name} has no public key`);
  const id = await clusterIdOf(target);
  return publicKey({ name: id, namespace }, id, key);
}

/** `delete virtualnode|configuration|gatewayserver|gatewayclient|publickey`: no wait; absent is an error. */
export async function deleteNamed({ api }: Target, type: ResourceType, ref: ObjectRef): Promise<void> {
  const found = await api.get(type, ref);
  if (found === undefined || !(await api.delete(type, refOf(found))))
    throw new Error(`${type.kind} ${ref.name} not found`);
}
