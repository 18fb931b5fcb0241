/** A node and a gateway of a cluster with one link, as tests of this room start from. */
import type { GatewayModel } from '#agent/network/plan/gateway-model.ts';
import type { NodeModel } from '#agent/network/plan/node-model.ts';

export const nodeModel: NodeModel = {
  node: 'node1',
  podCidrs: ['10.200.0.0/16'],
  overlayAddress: '10.80.0.1',
  links: [
    {
      name: 'tenant-b/b',
      remoteCidrs: ['10.71.0.0/16', '10.72.0.0/16'],
      mtu: 1340,
      gateway: { overlayAddress: '10.80.1.1', underlayAddress: '10.200.1.101' },
      replicaAddresses: ['10.200.1.101', '10.200.2.101'],
      vni: 0xabcdef,
    },
  ],
  entrances: [31_820],
  shortCuts: [],
  gatewayNodeAddresses: [],
  masqueradedHosts: [{ host: '192.0.2.7', exposed: '10.70.4.1' }],
  fullMasquerade: false,
  rulePriority: 101,
  matchesSockets: true,
  firewalls: [],
  routes: [],
};

export const gatewayModel: GatewayModel = {
  link: 'tenant-b/b',
  role: 'server',
  mtu: 1340,
  local: { pods: ['10.200.0.0/16'], external: '10.70.0.0/16' },
  remote: {
    pods: [{ real: '10.200.0.0/16', view: '10.71.0.0/16' }],
    external: [{ real: '10.70.0.0/16', view: '10.72.0.0/16' }],
  },
  overlay: { address: '10.80.1.1', vni: 0xabcdef },
  nodes: [
    {
      name: 'node1',
      overlayAddress: '10.80.0.1',
      underlayAddress: '10.200.1.1',
      sources: ['10.200.1.1', '172.30.1.1'],
      podCidrs: ['10.200.1.0/24'],
      own: true,
    },
    {
      name: 'node2',
      overlayAddress: '10.80.0.2',
      underlayAddress: '172.30.1.2',
      sources: ['10.200.2.1', '172.30.1.2'],
      podCidrs: ['10.200.2.0/24'],
      own: false,
    },
  ],
  strayPods: [{ ip: '10.200.77.7', node: 'node2' }],
  exposed: [
    { ip: '10.80.0.1', exposed: '10.70.1.1' },
    { ip: '10.80.0.2', exposed: '10.70.1.2' },
    { ip: '192.0.2.7', exposed: '10.70.4.1' },
  ],
  hosts: [{ ip: '192.0.2.7' }],
  siblings: [
    {
      link: 'tenant-c/c',
      remoteCidrs: ['10.81.0.0/16', '10.82.0.0/16'],
      overlayAddress: '10.80.1.2',
      underlayAddresses: ['10.200.2.102'],
      vni: 0x123456,
    },
  ],
  wireGuard: {
    implementation: 'userspace',
    listenPort: 51_840,
    privateKeyFile: '/proc/1/root/etc/wireguard/keys/privateKey',
  },
  firewalls: [],
  routes: [],
};
