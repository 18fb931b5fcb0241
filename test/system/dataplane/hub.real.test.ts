/** Topology T3: a hub and two leaves, all with the same ranges; and hosts outside any cluster, behind the hub. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { connect, type Netns, NetnsWorld } from '../../harness/netns.ts';
import { nodePort, openUnderlay, peer, TestCluster, type TestPod } from '../../harness/netns-cluster.ts';
import { port } from './pair.ts';

const world = new NetnsWorld();
let hub: TestCluster;
let leaves: TestCluster[];
let hubPods: TestPod[];
/** Two of leaf A, one of leaf B. */
let podsA: TestPod[];
let podB: TestPod;
let host: Netns;
const hostIp = '172.30.9.9';
/** What the hub's IP objects say: its view of offloaded pods, and where it exposes them. */
const exposed = {
  podA1: { ip: '10.71.1.5', exposed: '10.70.3.5' },
  podA2: { ip: '10.71.1.6', exposed: '10.70.3.6' },
  podB: { ip: '10.81.1.5', exposed: '10.70.3.7' },
  host: { ip: hostIp, exposed: '10.70.4.1' },
};
/** How a leaf sees the hub's external range. */
const fromLeaf = (address: string) => address.replace('10.70.', '10.72.');

beforeAll(async () => {
  const net = await openUnderlay(world);
  hub = new TestCluster(world, net, 'hub', 1);
  const [leafA, leafB] = [new TestCluster(world, net, 'a', 2), new TestCluster(world, net, 'b', 3)];
  leaves = [leafA, leafB];
  const hubNodes = [await hub.addNode(), await hub.addNode()];
  const [nodeA, nodeB] = [await leafA.addNode(), await leafB.addNode()];
  const ends = [
    await hub.addLink('to-a', hubNodes[0]!, 'client', leafA, { pods: 71, external: 72 }),
    await hub.addLink('to-b', hubNodes[1]!, 'client', leafB, { pods: 81, external: 82 }),
  ];
  for (const [i, leaf] of leaves.entries()) {
    const end = await leaf.addLink('to-hub', leaf.nodes[0]!, 'server', hub, { pods: 71, external: 72 });
    await leaf.exposeNodePort(end);
    peer(end, ends[i]!, `${leaf.nodes[0]!.ip}:${nodePort}`);
  }
  hubPods = [await hub.addPod(hubNodes[0]!, 5), await hub.addPod(hubNodes[1]!, 7)];
  podsA = [await leafA.addPod(nodeA, 5), await leafA.addPod(nodeA, 6)];
  podB = await leafB.addPod(nodeB, 5);
  host = await world.add('host');
  await connect({ netns: host, device: 'eth0' }, { netns: net, device: 'vhost' });
  await net.ip(['link set dev vhost master under']);
  await host.ip([`address add ${hostIp}/16 dev eth0`]);
  hub.exposed = Object.values(exposed);
  hub.hosts = [hostIp];
  for (const leaf of leaves) await leaf.program();
  await hub.program();
  await Promise.all([...hubPods, ...podsA, podB].map((pod) => pod.netns.serve(port)));
  await host.serve(port);
  await eventually('A is up', () => hubPods[0]!.netns.who('10.71.1.5', port), { withinMs: 10_000 });
  await eventually('B is up', () => hubPods[0]!.netns.who('10.81.1.5', port), { withinMs: 10_000 });
});
afterAll(async () => {
  for (const cluster of [hub, ...(leaves ?? [])]) await cluster?.close();
  await world.close();
});

describe('a hub and two leaves with the same ranges', () => {
  test('the same real address of both leaves is two addresses on one node', async () => {
    for (const pod of hubPods) {
      expect(await pod.netns.who('10.71.1.5', port)).toBe(pod.ip.replace('10.200.', '10.71.'));
      expect(await pod.netns.who('10.81.1.5', port)).toBe(pod.ip.replace('10.200.', '10.71.'));
    }
    const receivedBy = async (pod: TestPod) =>
      ((await (await pod.netns.agent()).ask('received', {})) as { bytes: number }).bytes;
    const before = [await receivedBy(podsA[0]!), await receivedBy(podB)];
    await hubPods[0]!.netns.udp('10.81.1.5', port, { size: 100 });
    expect([await receivedBy(podsA[0]!), await receivedBy(podB)]).toEqual([before[0], before[1]! + 100]);
  });

  test('from leaf to leaf each pod is seen as an address of its own', async () => {
    const toB = fromLeaf(exposed.podB.exposed);
    expect(await podsA[0]!.netns.who(toB, port)).toBe(fromLeaf(exposed.podA1.exposed));
    expect(await podsA[1]!.netns.who(toB, port)).toBe(fromLeaf(exposed.podA2.exposed));
    expect(await podB.netns.who(fromLeaf(exposed.podA2.exposed), port)).toBe(toB);
  });

  test('packets between leaves go from gateway to gateway, not by a node', async () => {
    const sent = async () =>
      Promise.all(
        hub.nodes.map(async ({ netns }) => {
          const [link] = JSON.parse(await netns.exec('ip', '-j', '-s', 'link', 'show', 'dev', 'liqo-overlay')) as {
            stats64: { rx: { packets: number } };
          }[];
          return link?.stats64.rx.packets;
        }),
      );
    const before = await sent();
    await podsA[0]!.netns.who(fromLeaf(exposed.podB.exposed), port);
    expect(await sent()).toEqual(before);
  });

  test('a transfer between leaves outlives the memory of all gateways', async () => {
    const transfer = podsA[0]!.netns.transfer(fromLeaf(exposed.podB.exposed), port, 8_000_000, 'down');
    let over = false;
    const watched = transfer.finally(() => {
      over = true;
    });
    watched.catch(() => undefined);
    const gateways = [hub, ...leaves].flatMap(({ links }) => links);
    while (!over) for (const { pod } of gateways) await pod.netns.exec('conntrack', '-F');
    expect((await watched).seconds).toBeLessThan(8);
  });
});

describe('a host behind the hub', () => {
  const fromA = fromLeaf(exposed.host.exposed);

  test('that knows the way back sees the pod itself', async () => {
    await host.ip([`route add 10.71.0.0/16 via ${hub.nodes[0]!.ip}`]);
    expect(await podsA[0]!.netns.who(fromA, port)).toBe('10.71.1.5');
    await host.ip([`route del 10.71.0.0/16 via ${hub.nodes[0]!.ip}`]);
  });

  test('that does not, sees a node when its IP asks for masquerade; pods of the hub may use the address, too', async () => {
    await expect(podsA[1]!.netns.who(fromA, port)).rejects.toThrow();
    hub.masqueradedHosts = [{ host: hostIp, exposed: exposed.host.exposed }];
    await hub.program();
    expect(await podsA[1]!.netns.who(fromA, port)).toBe(hub.nodes[0]!.ip);
    expect(await hubPods[1]!.netns.who(exposed.host.exposed, port)).toBe(hub.nodes[1]!.ip);
  });
});
