/** The objects of cluster A, as controllers and people write them. */
import { namespaces, nodes, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { type LinkEnd, nodePort, type TestCluster } from '../../harness/netns-cluster.ts';

export const peerId = 'milan';
export const tenant = `liqo-tenant-${peerId}`;
const networking = 'networking.liqo.io/v1beta1';
const ipam = 'ipam.liqo.io/v1alpha1';

export interface ObjectsWorld {
  /** Creates or replaces; the status goes along. */
  readonly put: <T extends KubeObject>(type: ResourceType<T>, object: object) => Promise<void>;
  readonly a: TestCluster;
  readonly b: TestCluster;
  /** B's end of the link. */
  readonly atB: LinkEnd;
}

/** Everything that controllers and people would have written by the time that the gateway pods start. */
export async function createObjects({ put, a, b, atB }: ObjectsWorld): Promise<void> {
  await put(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: tenant } });
  await put(serviceAccounts, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default', namespace: tenant },
  });
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
  const metadata = { name: peerId, namespace: tenant, labels: { 'liqo.io/remote-cluster-id': peerId } };
  await put(networkKinds.configurations, {
    apiVersion: networking,
    kind: 'Configuration',
    metadata,
    spec: { remote: { cidr: { pod: [b.podCidr], external: [b.external] } } },
    status: { remote: { cidr: { pod: ['10.71.0.0/16'], external: ['10.72.0.0/16'] } } },
  });
  await put(networkKinds.publicKeys, {
    apiVersion: networking,
    kind: 'PublicKey',
    metadata,
    spec: { publicKey: atB.publicKey },
  });
  await put(networkKinds.gatewayClients, {
    apiVersion: networking,
    kind: 'GatewayClient',
    metadata,
    spec: { mtu: 1340, endpoint: { addresses: [b.nodes[1]!.ip], port: nodePort, protocol: 'UDP' } },
  });
  await put(networkKinds.connections, {
    apiVersion: networking,
    kind: 'Connection',
    metadata: { ...metadata, name: `gw-${peerId}` },
    spec: { type: 'Client', gatewayRef: { kind: 'WgGatewayClient', name: peerId, namespace: tenant } },
  });
}

/** As the controller does it: for a link that has an active pod, whose address is `gatewayIp`. */
export async function createInternalFabric({ put }: Pick<ObjectsWorld, 'put'>, gatewayIp: string): Promise<void> {
  await put(networkKinds.internalFabrics, {
    apiVersion: networking,
    kind: 'InternalFabric',
    metadata: {
      name: peerId,
      namespace: tenant,
      labels: { 'liqo.io/remote-cluster-id': peerId },
      annotations: { 'networking.isthmus.dev/vni': '4242' },
    },
    spec: {
      mtu: 1340,
      remoteCIDRs: ['10.71.0.0/16', '10.72.0.0/16'],
      interface: { node: { name: 'liqo.y' }, gateway: { ip: '10.80.1.1' } },
      gatewayIP: gatewayIp,
    },
  });
}
