/** The objects of cluster A, as controllers and people write them. */
import { namespaces, nodes, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { type LinkEnd, nodePort, type TestCluster } from '../../../harness/netns-cluster.ts';

export const peerId = 'milan';
export const tenant = `liqo-tenant-${peerId}`;
const networking = 'networking.liqo.io/v1beta1';
const ipam = 'ipam.liqo.io/v1alpha1';

export interface ObjectsOwner {
  /** Creates or replaces; the status goes along. */
  readonly put: <T extends KubeObject>(type: ResourceType<T>, object: object) => Promise<void>;
  readonly a: TestCluster;
  readonly b: TestCluster;
  /** B's end of the link. */
  readonly atB: LinkEnd;
}

/** Everything that controllers and people would have written by the time that the gateway pods start. */
export async function createObjects({ put, a, b, atB }: ObjectsOwner): Promise<void> {
  for (const { name, podCidr, ip, overlayAddress } of a.nodes) {
    await put(nodes, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      spec: { podCIDR: podCidr, podCIDRs: [podCidr] },
      status: { addresses: [{ type: 'InternalIP', address: ip }] },
    });
    await put(networkKinds.internalNodes, {
      apiVersion: networking,
      kind: 'InternalNode',
      metadata: { name },
      spec: { interface: { gateway: { name: 'liqo.x' }, node: { ip: overlayAddress } } },
    });
    const exposed = overlayAddress.replace('10.80.0.', '10.70.1.');
    await put(networkKinds.ips, {
      apiVersion: ipam,
      kind: 'IP',
      metadata: { name: `node-${name}`, namespace: 'liqo' },
      spec: { ip: overlayAddress },
      status: { ip: exposed, cidr: a.external },
    });
  }
  for (const [type, cidr] of [
    ['pod-cidr', a.podCidr],
    ['external-cidr', a.external],
  ])
    await put(networkKinds.networks, {
      apiVersion: ipam,
      kind: 'Network',
      metadata: { name: type, namespace: 'liqo', labels: { 'ipam.liqo.io/network-type': type } },
      spec: { cidr },
      status: { cidr },
    });
  await createLinkObjects({ put }, { id: peerId, remote: b, publicKey: atB.publicKey, view: viewOfB });
}

export interface ObjectsLink {
  readonly id: string;
  readonly remote: TestCluster;
  readonly publicKey: string;
  /** What the peer's ranges are called here. */
  readonly view: { readonly pods: string; readonly external: string };
}

const viewOfB = { pods: '10.71.0.0/16', external: '10.72.0.0/16' };

/** The peer is dialled at its last node. */
export async function createLinkObjects(
  { put }: Pick<ObjectsOwner, 'put'>,
  { id, remote, publicKey, view }: ObjectsLink,
): Promise<void> {
  const namespace = `liqo-tenant-${id}`;
  await put(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await put(serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } });
  const metadata = { name: id, namespace, labels: { 'liqo.io/remote-cluster-id': id } };
  await put(networkKinds.configurations, {
    apiVersion: networking,
    kind: 'Configuration',
    metadata,
    spec: { remote: { cidr: { pod: [remote.podCidr], external: [remote.external] } } },
    status: { remote: { cidr: { pod: [view.pods], external: [view.external] } } },
  });
  await put(networkKinds.publicKeys, {
    apiVersion: networking,
    kind: 'PublicKey',
    metadata,
    spec: { publicKey },
  });
  await put(networkKinds.gatewayClients, {
    apiVersion: networking,
    kind: 'GatewayClient',
    metadata,
    spec: { mtu: 1340, endpoint: { addresses: [remote.nodes.at(-1)!.ip], port: nodePort, protocol: 'UDP' } },
  });
  await put(networkKinds.connections, {
    apiVersion: networking,
    kind: 'Connection',
    metadata: { ...metadata, name: `gw-${id}` },
    spec: { type: 'Client', gatewayRef: { kind: 'WgGatewayClient', name: id, namespace } },
  });
}

/** As the controller does it: for a link that has an active pod, whose address is `gatewayIp`. */
export async function createInternalFabric(
  { put }: Pick<ObjectsOwner, 'put'>,
  gatewayIp: string,
  { id, view }: Pick<ObjectsLink, 'id' | 'view'> = { id: peerId, view: viewOfB },
  number = 1,
): Promise<void> {
  await put(networkKinds.internalFabrics, {
    apiVersion: networking,
    kind: 'InternalFabric',
    metadata: {
      name: id,
      namespace: `liqo-tenant-${id}`,
      labels: { 'liqo.io/remote-cluster-id': id },
      annotations: { 'networking.isthmus.dev/vni': String(4241 + number) },
    },
    spec: {
      mtu: 1340,
      remoteCIDRs: [view.pods, view.external],
      interface: { node: { name: 'liqo.y' }, gateway: { ip: `10.80.1.${number}` } },
      gatewayIP: gatewayIp,
    },
  });
}
