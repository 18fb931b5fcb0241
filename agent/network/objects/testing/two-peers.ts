/** The objects of a cluster with two nodes and two peers, one of which dials it. */
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import type { InternalNode } from '#shared/schema/liqo/internal-node.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import type { GatewayContext } from '../gateway-facts-of.ts';
import { type NodeAgentObjects, noObjects } from '../objects.ts';

const core = { apiVersion: 'v1' };
const networking = { apiVersion: 'networking.liqo.io/v1beta1' };
const ipam = { apiVersion: 'ipam.liqo.io/v1alpha1' };

const node = (name: string, podCIDR: string, address: string, labels = {}): Node => ({
  ...core,
  kind: 'Node',
  metadata: { name, labels },
  spec: { podCIDR, podCIDRs: [podCIDR] },
  status: { addresses: [{ type: 'InternalIP', address }] },
});
const internalNode = (name: string, ip: string, nodeIP = {}): InternalNode => ({
  ...networking,
  kind: 'InternalNode',
  metadata: { name },
  spec: { interface: { gateway: { name: 'liqo.x' }, node: { ip } } },
  status: { nodeIP },
});
const gatewayPod = (peer: string, name: string, nodeName: string, podIP: string, active = false): Pod => ({
  ...core,
  kind: 'Pod',
  metadata: {
    name,
    namespace: `liqo-tenant-${peer}`,
    uid: `uid-${name}`,
    labels: {
      'networking.liqo.io/component': 'gateway',
      'networking.liqo.io/gateway-name': peer,
      ...(active ? { 'networking.liqo.io/active': 'true' } : {}),
    },
  },
  spec: { nodeName, containers: [] },
  status: { podIP, phase: 'Running' },
});
const ip = (
  name: string,
  real: string,
  exposed: string | undefined,
  more: Partial<Ip['spec']> = {},
  labels = {},
): Ip => ({
  ...ipam,
  kind: 'IP',
  metadata: { name, namespace: 'liqo', labels },
  spec: { ip: real, ...more },
  status: exposed === undefined ? {} : { ip: exposed, cidr: '10.70.0.0/16' },
});
const network = (name: string, type: string, cidr: string) => ({
  ...ipam,
  kind: 'Network',
  metadata: { name, namespace: 'liqo', labels: { 'ipam.liqo.io/network-type': type } },
  spec: { cidr },
  status: { cidr },
});

function peer(
  id: string,
  view: string,
  overlay: string,
  vni: number,
  role: 'server' | 'client',
): Partial<NodeAgentObjects> {
  const metadata = { name: id, namespace: `liqo-tenant-${id}`, labels: { 'liqo.io/remote-cluster-id': id } };
  const gateway = { ...networking, metadata };
  return {
    ...(role === 'server'
      ? {
          gatewayServers: [
            {
              ...gateway,
              kind: 'GatewayServer',
              spec: { mtu: 1340, endpoint: { port: 51841, serviceType: 'NodePort' } },
            },
          ],
        }
      : { gatewayClients: [{ ...gateway, kind: 'GatewayClient', spec: { mtu: 1400 } }] }),
    configurations: [
      {
        ...networking,
        kind: 'Configuration',
        metadata,
        spec: { remote: { cidr: { pod: ['10.200.0.0/16'], external: ['10.70.0.0/16'] } } },
        status: { remote: { cidr: { pod: [`10.${view}1.0.0/16`], external: [`10.${view}2.0.0/16`] } } },
      },
    ],
    publicKeys: [{ ...networking, kind: 'PublicKey', metadata, spec: { publicKey: `${id}-key` } }],
    internalFabrics: [
      {
        ...networking,
        kind: 'InternalFabric',
        metadata: { ...metadata, annotations: { 'networking.isthmus.dev/vni': String(vni) } },
        spec: {
          mtu: 1300,
          remoteCIDRs: [`10.${view}2.0.0/16`, `10.${view}1.0.0/16`],
          interface: { node: { name: 'liqo.y' }, gateway: { ip: overlay } },
          gatewayIP: '10.200.1.2',
        },
      },
    ],
  };
}

const join = (...parts: readonly Partial<NodeAgentObjects>[]): NodeAgentObjects => {
  const all: Record<string, readonly unknown[]> = { ...noObjects } as never;
  for (const part of parts)
    for (const [key, list] of Object.entries(part)) all[key] = [...(all[key] ?? []), ...(list as readonly unknown[])];
  return all as unknown as NodeAgentObjects;
};

export const world = join(
  peer('milan', '7', '10.80.0.9', 77, 'server'),
  peer('turin', '8', '10.80.0.10', 88, 'client'),
  {
    nodes: [
      node('n1', '10.200.1.0/24', '198.18.0.1'),
      node('n2', '10.200.2.0/24', '198.18.0.2'),
      node('virtual', '10.200.3.0/24', '198.18.0.3', { 'liqo.io/type': 'virtual-node' }),
    ],
    internalNodes: [
      internalNode('n1', '10.80.0.1', { local: '10.200.1.1', remote: '198.18.0.1' }),
      internalNode('n2', '10.80.0.2', { remote: '198.18.0.2' }),
      internalNode('virtual', '10.80.0.3'),
    ],
    networks: [network('pods', 'pod-cidr', '10.200.0.0/16'), network('external', 'external-cidr', '10.70.0.0/16')],
    ips: [
      ip('node-n1', '10.80.0.1', '10.70.0.7'),
      ip('printer', '192.168.1.9', '10.70.0.5', { masquerade: true }),
      ip('hidden', '192.168.1.10', '10.70.0.6', {}, { 'networking.liqo.io/host-unreachable': 'true' }),
      ip('offloaded', '10.81.2.7', '10.70.0.8'),
      ip('ungranted', '192.168.1.11', undefined),
      ip('twice', '192.168.1.9', '10.70.0.99'),
    ],
    gatewayPods: [
      gatewayPod('milan', 'gw-milan-a', 'n1', '10.200.1.2', true),
      gatewayPod('milan', 'gw-milan-b', 'n2', '10.200.2.2'),
      gatewayPod('turin', 'gw-turin-a', 'n2', '10.200.2.3', true),
    ],
    pods: [
      { ip: '10.200.1.5', node: 'n1' },
      { ip: '10.200.2.9', node: 'n1' },
      { ip: '10.200.3.3', node: 'virtual' },
    ],
  },
);
export const onNode = { node: 'n1', fullMasquerade: false, rulePriority: 101, bridgePorts: new Map() };
export const inGateway: GatewayContext = {
  link: 'liqo-tenant-milan/milan',
  node: 'n1',
  implementation: 'userspace',
  active: true,
  privateKeyFile: '/proc/7/root/etc/wireguard/keys/privateKey',
};
