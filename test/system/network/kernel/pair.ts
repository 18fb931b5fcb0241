/** Two clusters of two nodes with a link between them, a pod on each node; the server's gateway is behind a NodePort. */
import { eventually } from '../../../harness/eventually.ts';
import type { Netns, NetnsFixture } from '../../../harness/netns.ts';
import {
  type LinkEnd,
  nodePort,
  type Octets,
  openUnderlay,
  peer,
  TestCluster,
  type TestPod,
} from '../../../harness/netns-cluster.ts';

export const port = 8080;

interface Side {
  readonly cluster: TestCluster;
  readonly link: LinkEnd;
  /** One on the gateway's node, one on the other. */
  readonly pods: readonly [TestPod, TestPod];
  /** An address of the other side as this side sees it. */
  view(real: string): string;
}

export interface Pair {
  readonly net: Netns;
  readonly a: Side;
  readonly b: Side;
  close(): Promise<void>;
}

export interface PairRanges {
  readonly a: Octets;
  readonly b: Octets;
  /** How A sees B, and how B sees A. */
  readonly viewOfB: Octets;
  readonly viewOfA: Octets;
}

/** The same ranges on both sides, as reference T1 has them. */
export const identical: PairRanges = {
  a: { pods: 200, external: 70 },
  b: { pods: 200, external: 70 },
  viewOfB: { pods: 71, external: 72 },
  viewOfA: { pods: 71, external: 72 },
};

export async function openPair(clusters: NetnsFixture, ranges: PairRanges = identical): Promise<Pair> {
  const net = await openUnderlay(clusters);
  const a = new TestCluster(clusters, net, 'a', 1, ranges.a);
  const b = new TestCluster(clusters, net, 'b', 2, ranges.b);
  for (const cluster of [a, b]) for (let i = 0; i < 2; i += 1) await cluster.addNode();
  const atA = await a.addLink('to-b', a.nodes[0]!, 'client', b, ranges.viewOfB);
  const atB = await b.addLink('to-a', b.nodes[0]!, 'server', a, ranges.viewOfA);
  await b.exposeNodePort(atB);
  peer(atB, atA, `${b.nodes[1]!.ip}:${nodePort}`);
  const podsOf = async (cluster: TestCluster): Promise<[TestPod, TestPod]> => [
    await cluster.addPod(cluster.nodes[0]!, 5),
    await cluster.addPod(cluster.nodes[1]!, 7),
  ];
  const [podsA, podsB] = [await podsOf(a), await podsOf(b)];
  // the side that dials comes second: its first handshake is lost otherwise, and the next is five seconds later
  await b.program();
  await a.program();
  await Promise.all([...podsA, ...podsB].map((pod) => pod.netns.serve(port)));
  const sides = {
    a: { cluster: a, link: atA, pods: podsA, view: translate(ranges.b, ranges.viewOfB) },
    b: { cluster: b, link: atB, pods: podsB, view: translate(ranges.a, ranges.viewOfA) },
  };
  await eventually('the tunnel is up', () => podsA[0].netns.who(sides.a.view(podsB[0].ip), port), {
    withinMs: 10_000,
  });
  return {
    net,
    ...sides,
    close: async () => {
      await Promise.all([a.close(), b.close()]);
    },
  };
}

const translate =
  (real: Octets, view: Octets) =>
  (address: string): string => {
    const [first, second, ...rest] = address.split('.');
    const seen = Number(second) === real.pods ? view.pods : Number(second) === real.external ? view.external : second;
    return [first, seen, ...rest].join('.');
  };
