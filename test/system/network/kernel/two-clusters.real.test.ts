/** Topologies T1 and T2: which addresses reach each other, and which source the receiver sees. Real kernel, real WireGuard. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Netns, NetnsFixture } from '../../../harness/netns.ts';
import { masqueradeRule } from '../../../harness/netns-cluster.ts';
import { carried } from './carried.ts';
import { identical, openPair, type Pair, type PairRanges, port } from './pair.ts';

const disjoint: PairRanges = {
  a: { pods: 200, external: 70 },
  b: { pods: 210, external: 75 },
  viewOfB: { pods: 210, external: 75 },
  viewOfA: { pods: 200, external: 70 },
};

async function sentOnOverlay(netns: Netns): Promise<number> {
  const [sent, received] = [await carried(netns, 'liqo-overlay', 'tx'), await carried(netns, 'liqo-overlay', 'rx')];
  return sent.packets + received.packets;
}

describe.each([
  ['identical ranges', identical],
  ['disjoint ranges', disjoint],
])('two clusters with %s', (_, ranges) => {
  const clusters = new NetnsFixture();
  let pair: Pair;
  beforeAll(async () => {
    pair = await openPair(clusters, ranges);
  });
  afterAll(async () => {
    await pair?.close();
    await clusters.close();
  });

  test('pods reach each other from every node in both directions, each seen as its own address', async () => {
    const { a, b } = pair;
    const seen: string[] = [];
    const expected: string[] = [];
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      for (const source of from.pods) {
        for (const target of to.pods) {
          seen.push(await source.netns.who(from.view(target.ip), port));
          expected.push(to.view(source.ip));
        }
      }
    }
    expect(seen).toEqual(expected);
    for (const { cluster } of [a, b]) {
      for (const node of cluster.nodes) expect(await node.netns.counted(masqueradeRule)).toBe(0);
    }
  });

  test('TCP between pods crosses nodes, overlay and tunnel in segments of many packets each', async () => {
    const { a, b } = pair;
    const [gatewayA, gatewayB] = [a.link.pod.netns, b.link.pod.netns];
    const places = [
      ["A's gateway, from a pod of another node", gatewayA, 'liqo-overlay', 'rx', a.pods[1]],
      ["A's gateway, from a pod of its own node", gatewayA, 'liqo-overlay', 'rx', a.pods[0]],
      ["A's tunnel", gatewayA, 'liqo-tunnel', 'tx', a.pods[1]],
      ["B's tunnel", gatewayB, 'liqo-tunnel', 'rx', a.pods[1]],
      ["B's node", b.cluster.nodes[1]!.netns, 'liqo-overlay', 'rx', a.pods[1]],
    ] as const;
    for (const [name, netns, device, way, from] of places) {
      const before = await carried(netns, device, way);
      await from.netns.transfer(a.view(b.pods[1].ip), port, 8_000_000, 'up');
      const after = await carried(netns, device, way);
      const size = (after.bytes - before.bytes) / (after.packets - before.packets);
      expect(size, name).toBeGreaterThan(4 * 1340);
    }
  });

  test("a pod that has the very address of the other side's gateway pod is reached, and reaches", async () => {
    const { a, b } = pair;
    const hostOf = (ip: string): number => Number(ip.split('.')[3]);
    const atB = await b.cluster.addPod(b.cluster.nodes[0]!, hostOf(a.link.pod.ip));
    const atA = await a.cluster.addPod(a.cluster.nodes[0]!, hostOf(b.link.pod.ip));
    await Promise.all([atA, atB].map((pod) => pod.netns.serve(port)));
    const [podA, podB] = [a.pods[1], b.pods[1]];
    expect(await podA.netns.who(a.view(atB.ip), port)).toBe(b.view(podA.ip));
    expect(await podB.netns.who(b.view(atA.ip), port)).toBe(a.view(podB.ip));
    expect(await atB.netns.who(b.view(podA.ip), port)).toBe(a.view(atB.ip));
    expect(await atA.netns.who(a.view(podB.ip), port)).toBe(b.view(atA.ip));
    expect(await atA.netns.who(a.view(atB.ip), port)).toBe(b.view(atA.ip));
  });

  test('a node is seen as an address of its own, and answers are found again', async () => {
    const { a, b } = pair;
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      for (const node of from.cluster.nodes) {
        for (const pod of to.pods) {
          const exposed = to.view(from.cluster.nodeExposed(node));
          expect(await node.netns.who(from.view(pod.ip), port)).toBe(exposed);
        }
      }
    }
  });

  test('a peer cannot call a node by the address that it answers to', async () => {
    const { a, b } = pair;
    const [node] = a.cluster.nodes;
    await node!.netns.serve(port + 1);
    const address = b.view(a.cluster.nodeExposed(node!));
    expect(await b.pods[0].netns.udp(address, port + 1, { timeoutMs: 200 })).toEqual({ answered: false });
    expect((await b.pods[0].netns.udp(address, 12_345, { timeoutMs: 200 })).answered).toBe(false);
    await expect(b.pods[0].netns.who(address, port + 1)).rejects.toThrow(/no answer/);
  });

  test('a ping of the gateway is answered by the node of the other one, and none else', async () => {
    const { a, b } = pair;
    await b.cluster.nodes[0]!.netns.serve(12_345);
    const [node] = a.cluster.nodes;
    const answer = await node!.netns.udp(a.link.overlayAddress, 12_345, { bind: node!.overlayAddress });
    expect(answer).toEqual({ answered: true, from: b.link.overlayAddress, size: 16 });
  });

  test('a NodePort on any node leads to a remote pod, which sees that node', async () => {
    const { a, b, net } = pair;
    for (const node of a.cluster.nodes) {
      await node.netns.nft(`table ip nodeport-test {
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    fib daddr type local tcp dport 30080 dnat to ${a.view(b.pods[1].ip)}:${port}
  }
}`);
      expect(await net.who(node.ip, 30_080)).toBe(b.view(a.cluster.nodeExposed(node)));
    }
  });

  test('traffic inside a cluster never enters the overlay', async () => {
    const { a } = pair;
    const before = await Promise.all(a.cluster.nodes.map((node) => sentOnOverlay(node.netns)));
    const [first, second] = a.pods;
    expect(await first.netns.who(second.ip, port)).toBe(first.ip);
    expect(await second.netns.who(first.ip, port)).toBe(second.ip);
    expect(await Promise.all(a.cluster.nodes.map((node) => sentOnOverlay(node.netns)))).toEqual(before);
  });

  test('both ends are told a segment size that fits the tunnel', async () => {
    const { a, b } = pair;
    const [from, to] = [a.pods[1], b.pods[1]];
    for (const pod of [from, to]) {
      await pod.netns.nft(`table ip segments {
  chain input {
    type filter hook input priority 0; policy accept;
    tcp flags & syn == syn tcp option maxseg size 1300 counter comment "fits"
    tcp flags & syn == syn tcp option maxseg size != 1300 counter comment "does not fit"
  }
}`);
    }
    await from.netns.who(a.view(to.ip), port);
    for (const pod of [from, to]) {
      // More than one where an answer came so late that it was asked again.
      expect(await pod.netns.counted('fits')).toBeGreaterThan(0);
      expect(await pod.netns.counted('does not fit')).toBe(0);
    }
  });

  test('what is not there is said to be unreachable at once', async () => {
    const { a, b } = pair;
    const nowhere = a.view(b.pods[0].ip).replace(/\.\d+\.\d+$/, '.250.9');
    await expect(a.pods[1].netns.who(nowhere, port)).rejects.toThrow(/EHOSTUNREACH/);
  });
});
