/** What a node and a gateway know of the network, from the objects of a cluster. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import type { BridgePort } from '../node/bridge-ports.ts';
import { gatewayModelOf } from './gateway-facts-of.ts';
import { nodeModelOf } from './node-facts-of.ts';
import type { NodeAgentObjects } from './objects.ts';
import { inGateway, onNode, world } from './testing/two-peers.ts';

const model = (objects: NodeAgentObjects, context = inGateway) => {
  const outcome = gatewayModelOf(objects, context);
  if (!outcome.ok) throw new Error(`waits for ${outcome.waitingFor}`);
  return outcome.model;
};

describe('what a node has to know', () => {
  test('a link with its active gateway, every replica and the smaller of the two sizes', () => {
    const links = nodeModelOf(world, onNode)?.links;
    expect(links?.[0]).toEqual({
      name: 'liqo-tenant-milan/milan',
      remoteCidrs: ['10.71.0.0/16', '10.72.0.0/16'],
      mtu: 1300,
      gateway: { overlayAddress: '10.80.0.9', underlayAddress: '10.200.1.2' },
      replicaAddresses: ['10.200.1.2', '10.200.2.2'],
      vni: 77,
    });
    expect(links?.map(({ name }) => name)).toEqual(['liqo-tenant-milan/milan', 'liqo-tenant-turin/turin']);
  });

  test('addresses by which nodes with a gateway may masquerade, and hosts hidden behind nodes', () => {
    const found = nodeModelOf(world, onNode);
    expect(found?.gatewayNodeAddresses).toEqual(['10.200.1.1', '198.18.0.1', '198.18.0.2']);
    expect(found?.masqueradedHosts).toEqual([{ host: '192.168.1.9', exposed: '10.70.0.5' }]);
  });

  test('the node ports of gateways, server or client, behind any type of Service; what is no port is none', () => {
    const withPort = <
      T extends NodeAgentObjects['gatewayServers'][number] | NodeAgentObjects['gatewayClients'][number],
    >(
      gateway: T,
      text: string,
    ): T => ({
      ...gateway,
      metadata: { ...gateway.metadata, annotations: { 'networking.isthmus.dev/node-port': text } },
    });
    const [server] = world.gatewayServers;
    const [client] = world.gatewayClients;
    const entrances = (ofServer: string, ofClient: string) =>
      nodeModelOf(
        {
          ...world,
          gatewayServers: [withPort(server!, ofServer)],
          gatewayClients: [withPort(client!, ofClient)],
        },
        onNode,
      )?.entrances;
    expect(entrances('31820', '30001')).toEqual([31_820, 30_001]);
    expect(entrances('0', 'udp')).toEqual([]);
    expect(nodeModelOf(world, onNode)?.entrances).toEqual([]);
  });

  test('where its own gateways are plugged in, once each of them has been looked at', () => {
    const shortCuts = (...known: readonly (readonly [string, BridgePort | undefined])[]) =>
      nodeModelOf(world, { ...onNode, bridgePorts: new Map(known) })?.shortCuts;
    const port = { bridge: 'cni0', port: 'veth7' };
    expect(shortCuts()).toBeUndefined();
    expect(shortCuts(['uid-gw-milan-b', port])).toBeUndefined();
    expect(shortCuts(['uid-gw-milan-a', port])).toEqual([{ to: '10.200.1.2', ...port }]);
    expect(shortCuts(['uid-gw-milan-a', undefined])).toEqual([]);
  });

  test('nothing without an InternalNode', () => {
    expect(nodeModelOf(world, { ...onNode, node: 'n3' })).toBeUndefined();
  });

  test('a link without active replica, so that packets are refused instead of leaving by the default route', () => {
    const asleep = {
      ...world,
      gatewayPods: world.gatewayPods.map((pod) => ({
        ...pod,
        metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, 'networking.liqo.io/active': 'false' } },
      })),
    };
    expect(nodeModelOf(asleep, onNode)?.links[0]).not.toHaveProperty('gateway');
  });

  test('the configured size while the path is measured', () => {
    const sizes = { measuring: new Set(['liqo-tenant-milan/milan']), found: new Map() };
    expect(nodeModelOf(world, { ...onNode, sizes })?.links.map(({ mtu }) => mtu)).toEqual([1340, 1300]);
    expect(model(world, { ...inGateway, sizes }).mtu).toBe(1340);
  });

  test('what was found on the path, once it was measured', () => {
    const sizes = { measuring: new Set<string>(), found: new Map([['liqo-tenant-milan/milan', 1250]]) };
    expect(nodeModelOf(world, { ...onNode, sizes })?.links.map(({ mtu }) => mtu)).toEqual([1250, 1300]);
    expect(model(world, { ...inGateway, sizes }).mtu).toBe(1250);
  });
});

describe('what a gateway has to know', () => {
  test('both views, its port and key, and a peer that it does not dial by itself', () => {
    expect(model(world)).toMatchObject({
      role: 'server',
      local: { pods: ['10.200.0.0/16'], external: '10.70.0.0/16' },
      remote: {
        pods: [{ real: '10.200.0.0/16', view: '10.71.0.0/16' }],
        external: [{ real: '10.70.0.0/16', view: '10.72.0.0/16' }],
      },
      overlay: { address: '10.80.0.9', vni: 77 },
      wireGuard: { listenPort: 51841, privateKeyFile: inGateway.privateKeyFile, peer: { publicKey: 'milan-key' } },
    });
    expect(model(world).wireGuard.peer).not.toHaveProperty('endpoint');
  });

  test('a standby keeps no way to the peer open', () => {
    expect(model(world).wireGuard.peer?.keepaliveSeconds).toBe(5);
    expect(model(world, { ...inGateway, active: false }).wireGuard.peer).toEqual({ publicKey: 'milan-key' });
  });

  test('a client listens on a port that its peer can foresee', () => {
    expect(model(world, { ...inGateway, link: 'liqo-tenant-turin/turin' }).wireGuard.listenPort).toBe(51_840);
  });

  test.each([
    { on: 'n1', towards: { n1: '10.200.1.1', n2: '198.18.0.2' } },
    { on: 'n2', towards: { n1: '198.18.0.1', n2: '198.18.0.2' } },
  ])('on $on it sends to each node where that node answers from', ({ on, towards }) => {
    const { nodes } = model(world, { ...inGateway, node: on });
    expect(Object.fromEntries(nodes.map(({ name, underlayAddress }) => [name, underlayAddress]))).toEqual(towards);
    expect(nodes.filter(({ own }) => own).map(({ name }) => name)).toEqual([on]);
  });

  test('pods outside their node’s range; those of virtual nodes are not here', () => {
    expect(model(world).strayPods).toEqual([{ ip: '10.200.2.9', node: 'n1' }]);
  });

  test('exposed addresses, of which only foreign ones are hosts', () => {
    expect(model(world).exposed).toEqual([
      { ip: '10.80.0.1', exposed: '10.70.0.7' },
      { ip: '10.81.2.7', exposed: '10.70.0.8' },
      { ip: '192.168.1.9', exposed: '10.70.0.5' },
    ]);
    expect(model(world).hosts).toEqual([{ ip: '192.168.1.9' }]);
  });

  test.each([
    { by: 'n2', hosts: [{ ip: '192.168.1.9', node: 'n2' }] },
    { by: 'gone', hosts: [{ ip: '192.168.1.9' }] },
  ])('which node answers for an exposed host, as its IP says: $by', ({ by, hosts }) => {
    const noted = (one: Ip): Ip => ({
      ...one,
      metadata: { ...one.metadata, annotations: { 'isthmus.dev/served-by': by } },
    });
    expect(model({ ...world, ips: world.ips.map(noted) }).hosts).toEqual(hosts);
    const isHere = nodeModelOf({ ...world, ips: world.ips.map(noted) }, { ...onNode, node: 'n2' });
    expect(isHere?.masqueradedHosts.map((one) => one.isHere ?? false)).toEqual([by === 'n2']);
  });

  test('sibling links, the active replica first', () => {
    expect(model(world).siblings).toEqual([
      {
        link: 'liqo-tenant-turin/turin',
        remoteCidrs: ['10.81.0.0/16', '10.82.0.0/16'],
        overlayAddress: '10.80.0.10',
        underlayAddresses: ['10.200.2.3'],
        vni: 88,
      },
    ]);
  });

  test.each([
    { missing: 'configurations', says: 'a Configuration of the peer' },
    { missing: 'internalFabrics', says: 'an InternalFabric with a tunnel id' },
    { missing: 'networks', says: 'the Network of the external CIDR' },
    { missing: 'gatewayServers', says: 'a GatewayServer or GatewayClient' },
  ] as const)('without $missing it says what it waits for', ({ missing, says }) => {
    expect(gatewayModelOf({ ...world, [missing]: [] }, inGateway)).toEqual({ ok: false, waitingFor: says });
  });

  test('a peer without key is no peer yet', () => {
    expect(model({ ...world, publicKeys: [] }).wireGuard).not.toHaveProperty('peer');
  });
});

test('any order of the objects gives the same models', () => {
  const shuffled = fc.tuple(
    ...Object.values(world).map((list) => fc.shuffledSubarray([...list], { minLength: list.length })),
  );
  fc.assert(
    fc.property(shuffled, (lists) => {
      const objects = Object.fromEntries(Object.keys(world).map((key, index) => [key, lists[index]])) as never;
      expect(nodeModelOf(objects, onNode)).toEqual(nodeModelOf(world, onNode));
      expect(gatewayModelOf(objects, inGateway)).toEqual(gatewayModelOf(world, inGateway));
    }),
    { numRuns: 50 },
  );
});
