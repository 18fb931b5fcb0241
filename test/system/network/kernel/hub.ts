/** A hub with two leaves, all with the same ranges, and a host outside any cluster that the hub exposes. */
import { eventually } from '../../../harness/eventually.ts';
import { connect, type Netns, type NetnsFixture } from '../../../harness/netns.ts';
import { nodePort, openUnderlay, peer, TestCluster, type TestPod } from '../../../harness/netns-cluster.ts';
import { port } from './pair.ts';

export const hostIp = '172.30.9.9';

/** What the hub's IP objects say: its view of offloaded pods, and where it exposes them. */
const exposed = {
  podA1: { ip: '10.71.1.5', exposed: '10.70.3.5' },
  podA2: { ip: '10.71.1.6', exposed: '10.70.3.6' },
  podB: { ip: '10.81.1.5', exposed: '10.70.3.7' },
  host: { ip: hostIp, exposed: '10.70.4.1' },
};

/** How a leaf sees the hub's external range. */
export const fromLeaf = (address: string): string => address.replace('10.70.', '10.72.');

export interface Hub {
  readonly hub: TestCluster;
  readonly leaves: readonly [TestCluster, TestCluster];
  /** Leaf A is 10.71 here, leaf B is 10.81; each leaf sees the hub as 10.71. */
  readonly hubPods: readonly [TestPod, TestPod];
  readonly podsA: readonly [TestPod, TestPod];
  readonly podB: TestPod;
  readonly host: Netns;
  readonly exposed: typeof exposed;
  close(): Promise<void>;
}

export async function openHub(clusters: NetnsFixture): Promise<Hub> {
  const net = await openUnderlay(clusters);
  const hub = new TestCluster(clusters, net, 'hub', 1);
  const leaves = [new TestCluster(clusters, net, 'a', 2), new TestCluster(clusters, net, 'b', 3)] as const;
  const hubNodes = [await hub.addNode(), await hub.addNode()] as const;
  const [nodeA, nodeB] = [await leaves[0].addNode(), await leaves[1].addNode()];
  const ends = [
    await hub.addLink('to-a', hubNodes[0], 'client', leaves[0], { pods: 71, external: 72 }),
    await hub.addLink('to-b', hubNodes[1], 'client', leaves[1], { pods: 81, external: 82 }),
  ];
  for (const [i, leaf] of leaves.entries()) {
    const end = await leaf.addLink('to-hub', leaf.nodes[0]!, 'server', hub, { pods: 71, external: 72 });
    await leaf.exposeNodePort(end);
    peer(end, ends[i]!, `${leaf.nodes[0]!.ip}:${nodePort}`);
  }
  const hubPods = [await hub.addPod(hubNodes[0], 5), await hub.addPod(hubNodes[1], 7)] as const;
  const podsA = [await leaves[0].addPod(nodeA, 5), await leaves[0].addPod(nodeA, 6)] as const;
  const podB = await leaves[1].addPod(nodeB, 5);
  const host = await clusters.add('host');
  await connect({ netns: host, device: 'eth0' }, { netns: net, device: 'vhost' });
  await net.ip(['link set dev vhost master under']);
  await host.ip([`address add ${hostIp}/16 dev eth0`]);
  hub.exposed = Object.values(exposed);
  hub.hosts = [hostIp];
  for (const leaf of leaves) await leaf.program();
  await hub.program();
  await Promise.all([...hubPods, ...podsA, podB].map((pod) => pod.netns.serve(port)));
  await host.serve(port);
  for (const remote of ['10.71.1.5', '10.81.1.5']) {
    await eventually(`${remote} answers`, () => hubPods[0].netns.who(remote, port), { withinMs: 10_000 });
  }
  return {
    hub,
    leaves,
    hubPods,
    podsA,
    podB,
    host,
    exposed,
    close: async () => {
      await Promise.all([hub, ...leaves].map((cluster) => cluster.close()));
    },
  };
}
