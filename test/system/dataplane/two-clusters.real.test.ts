/** Topology T1: two clusters of two nodes with identical ranges, the server's gateway behind a NodePort. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { NetnsWorld } from '../../harness/netns.ts';
import {
  type LinkEnd,
  nodePort,
  peer,
  type TestCluster,
  type TestPod,
  twoClusters,
} from '../../harness/netns-cluster.ts';

const world = new NetnsWorld();
const port = 8080;
let a: TestCluster;
let b: TestCluster;
let atA: LinkEnd;
let atB: LinkEnd;
let podsA: TestPod[];
let podsB: TestPod[];
/** As the other side sees it. */
const view = (ip: string, second = 71): string => ip.replace(/^10\.200\./, `10.${second}.`);

beforeAll(async () => {
  ({ a, b } = await twoClusters(world));
  [atA, atB] = [await a.addLink('to-b', a.nodes[0]!, 'client', 71), await b.addLink('to-a', b.nodes[0]!, 'server', 71)];
  await b.exposeNodePort(atB);
  peer(atB, atA, `${b.nodes[1]!.ip}:${nodePort}`);
  const podsOf = async (cluster: TestCluster) => [
    await cluster.addPod(cluster.nodes[0]!, 5),
    await cluster.addPod(cluster.nodes[1]!, 7),
  ];
  [podsA, podsB] = [await podsOf(a), await podsOf(b)];
  // the side that dials comes second: its first handshake is lost otherwise, and the next is five seconds later
  await b.program();
  await a.program();
  await Promise.all([...podsA, ...podsB].map((pod) => pod.netns.serve(port)));
  await eventually('the tunnel is up', async () => podsA[0]!.netns.who(view(podsB[0]!.ip), port), { withinMs: 10_000 });
});

afterAll(async () => {
  a?.close();
  b?.close();
  await world.close();
});

describe('pods of two clusters with the same ranges', () => {
  test('reach each other from every node in both directions, each seen as its own address', async () => {
    for (const [from, to] of [
      [podsA, podsB],
      [podsB, podsA],
    ] as const) {
      for (const source of from) {
        for (const target of to) {
          expect(await source.netns.who(view(target.ip), port)).toBe(view(source.ip));
        }
      }
    }
  });
});
