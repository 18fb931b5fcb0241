/** One pair of clusters through bad weather: forged packets, lost state, small and silent paths (reference 10.3, T4 and T5). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../../harness/eventually.ts';
import { type Netns, NetnsFixture } from '../../../harness/netns.ts';
import { forge } from '../../../harness/vxlan.ts';
import { carried } from './carried.ts';
import { type Attempt, outlives } from './forgotten.ts';
import { identical, openPair, type Pair, port } from './pair.ts';

const clusters = new NetnsFixture();
let pair: Pair;
beforeAll(async () => {
  pair = await openPair(clusters, identical);
});
afterAll(async () => {
  await pair?.close();
  await clusters.close();
});

/** Packets that a chain of ours dropped. */
async function dropped(netns: Netns, chain: string): Promise<number> {
  const { nftables } = JSON.parse(await netns.exec('nft', '-j', 'list', 'chain', 'ip', 'isthmus', chain)) as {
    nftables: { rule?: { expr: ({ counter?: { packets: number } } | { drop?: null })[] } }[];
  };
  return nftables
    .flatMap(({ rule }) => (rule?.expr.some((e) => 'drop' in e) ? rule.expr : []))
    .reduce((sum, e) => sum + ('counter' in e ? (e.counter?.packets ?? 0) : 0), 0);
}

/** So many by now, and no more: a busy machine takes its time for what is on its way. */
async function drop(netns: Netns, chain: string, wanted: number): Promise<void> {
  await eventually(`${wanted} drops`, async () => (await dropped(netns, chain)) >= wanted, { everyMs: 20 });
  expect(await dropped(netns, chain)).toBe(wanted);
}

const receivedBy = async (netns: Netns): Promise<number> =>
  ((await (await netns.agent()).ask('received', {})) as { bytes: number }).bytes;

describe('forged overlay packets', () => {
  const overlayPort = 6091;

  /** To a pod of A, as if from a peer. */
  const intoNode = (vni: number) =>
    forge({
      vni,
      to: pair.a.cluster.nodes[0]!.overlayAddress,
      source: '10.71.9.9',
      destination: pair.a.pods[0].ip,
      port,
      payload: 'forged',
    });

  test('one with the right number from the gateway itself is delivered, so that the others show something', async () => {
    const { link, pods, cluster } = pair.a;
    const before = await receivedBy(pods[0].netns);
    await link.pod.netns.udp(cluster.nodes[0]!.bridgeIp, overlayPort, { hex: intoNode(link.vni), timeoutMs: 50 });
    await eventually('it is delivered', async () => (await receivedBy(pods[0].netns)) > before, { everyMs: 20 });
  });

  test('are dropped by a node: from a pod, from a pod with the address of the gateway, from outside', async () => {
    const { link, pods, cluster } = pair.a;
    const [node] = cluster.nodes;
    const before = await receivedBy(pods[0].netns);
    const drops = await dropped(node!.netns, 'input');
    await pods[1].netns.udp(node!.ip, overlayPort, { hex: intoNode(link.vni), timeoutMs: 50 });
    await pods[0].netns.ip([`address add ${link.pod.ip}/32 dev lo`]);
    await pods[0].netns.udp(node!.bridgeIp, overlayPort, { hex: intoNode(4711), bind: link.pod.ip, timeoutMs: 50 });
    await pods[0].netns.ip([`address del ${link.pod.ip}/32 dev lo`]);
    await pair.net.udp(node!.ip, overlayPort, { hex: intoNode(link.vni), timeoutMs: 50 });
    await drop(node!.netns, 'input', drops + 3);
    // the address of a pod of this node, by the interface of the underlay: not even with the right number
    await pair.net.ip([`address add ${link.pod.ip}/32 dev lo`]);
    await pair.net.udp(node!.ip, overlayPort, { hex: intoNode(link.vni), bind: link.pod.ip, timeoutMs: 50 });
    await pair.net.ip([`address del ${link.pod.ip}/32 dev lo`]);
    await drop(node!.netns, 'input', drops + 4);
    expect(await receivedBy(pods[0].netns)).toBe(before);
  });

  test('are dropped by a gateway: from a pod with the right number, and with the address of a node and a wrong one', async () => {
    const { link, pods, cluster, view } = pair.a;
    const target = pair.b.pods[0];
    const before = await receivedBy(target.netns);
    const drops = await dropped(link.pod.netns, 'input');
    const forged = (vni: number) =>
      forge({
        vni,
        to: link.overlayAddress,
        source: pods[1].ip,
        destination: view(target.ip),
        port,
        payload: 'forged',
      });
    await pods[0].netns.udp(link.pod.ip, overlayPort, { hex: forged(link.vni), timeoutMs: 50 });
    const { bridgeIp } = cluster.nodes[0]!;
    await pods[0].netns.ip([`address add ${bridgeIp}/32 dev lo`]);
    await pods[0].netns.udp(link.pod.ip, overlayPort, { hex: forged(4711), bind: bridgeIp, timeoutMs: 50 });
    await pods[0].netns.ip([`address del ${bridgeIp}/32 dev lo`]);
    await drop(link.pod.netns, 'input', drops + 2);
    expect(await receivedBy(target.netns)).toBe(before);
    // the same packet by the node is what the gateway is for
    await cluster.nodes[0]!.netns.udp(link.pod.ip, overlayPort, { hex: forged(link.vni), timeoutMs: 50 });
    await eventually('it is delivered', async () => (await receivedBy(target.netns)) > before, { everyMs: 20 });
  });

  test('out of the tunnel come only sources of the peer, and only to our ranges', async () => {
    const { a, b } = pair;
    const gateway = b.link.pod.netns;
    // a gateway that lies: its own translation is off for these
    await gateway.nft(`table ip liar {
  chain output {
    type filter hook output priority raw; policy accept;
    ip saddr { 10.200.77.7, 10.99.0.1 } notrack
  }
}`);
    const target = a.pods[0];
    const host = pair.net;
    await host.serve(port);
    await gateway.ip([
      'address add 10.200.77.7/32 dev lo',
      'address add 10.99.0.1/32 dev lo',
      `route add ${target.ip} dev liqo-tunnel`,
      'route add 172.30.255.254 dev liqo-tunnel',
    ]);
    const drops = await dropped(a.link.pod.netns, 'origin');
    const [before, hostBefore] = [await receivedBy(target.netns), await receivedBy(host)];
    await gateway.udp(target.ip, port, { bind: '10.99.0.1', timeoutMs: 50 });
    await gateway.udp('172.30.255.254', port, { bind: '10.200.77.7', timeoutMs: 50 });
    await drop(a.link.pod.netns, 'origin', drops + 2);
    expect([await receivedBy(target.netns), await receivedBy(host)]).toEqual([before, hostBefore]);
    await gateway.udp(target.ip, port, { bind: '10.200.77.7', timeoutMs: 50 });
    await eventually('a pod of the peer may', async () => (await receivedBy(target.netns)) > before, { everyMs: 20 });
    await gateway.ip(['route del 172.30.255.254 dev liqo-tunnel', `route del ${target.ip} dev liqo-tunnel`]);
    await gateway.exec('nft', 'delete', 'table', 'ip', 'liar');
  });
});

describe('a path that is smaller than the pods think', () => {
  const headers = 28;
  const known = async (netns: Netns, address: string) =>
    /mtu (\d+)/.exec(await netns.exec('ip', 'route', 'get', address))?.[1];

  test('1340 bytes pass unfragmented, one more is answered with the size that fits', async () => {
    const { a, b } = pair;
    const [from, address] = [a.pods[1].netns, a.view(b.pods[1].ip)];
    expect(await from.udp(address, port, { size: 1340 - headers })).toMatchObject({ answered: true, size: 1312 });
    expect(await known(from, address)).toBeUndefined();
    expect((await from.udp(address, port, { size: 1341 - headers, timeoutMs: 300 })).answered).toBe(false);
    expect(await known(from, address)).toBe('1340');
    expect(await from.udp(address, port, { size: 4000 })).toMatchObject({ answered: true, size: 4000 });
  });

  test.each([1450, 1400])('TCP gets through an underlay of %i bytes, with every ICMP error lost', async (bytes) => {
    const { a, b } = pair;
    for (const node of [...a.cluster.nodes, ...b.cluster.nodes]) {
      await node.netns.ip([`link set dev eth0 mtu ${bytes}`]);
    }
    await pair.net.nft(`table bridge silent {
  chain forward {
    type filter hook forward priority 0; policy accept;
    ip protocol icmp drop
  }
}`);
    for (const node of a.cluster.nodes) {
      await node.netns.nft(`table ip silent {
  chain output {
    type filter hook output priority 0; policy accept;
    icmp type destination-unreachable drop
  }
}`);
    }
    const address = a.view(b.pods[1].ip);
    await a.pods[1].netns.transfer(address, port, 4_000_000, 'up');
    await a.pods[1].netns.transfer(address, port, 4_000_000, 'down');
    await pair.net.exec('nft', 'delete', 'table', 'bridge', 'silent');
    for (const node of a.cluster.nodes) await node.netns.exec('nft', 'delete', 'table', 'ip', 'silent');
    for (const node of [...a.cluster.nodes, ...b.cluster.nodes]) await node.netns.ip(['link set dev eth0 mtu 1500']);
  });
});

describe('connections that are forgotten', () => {
  /** Of all flows between this node and the gateway, both ways. */
  const bytesOf = async (node: Netns) =>
    (await carried(node, 'liqo-overlay', 'rx')).bytes + (await carried(node, 'liqo-overlay', 'tx')).bytes;

  test.each([
    ['the gateways', 'pod', 'up'],
    ['the gateways', 'pod', 'down'],
    ['the gateways', 'node', 'up'],
    ['the gateways', 'node', 'down'],
    ['its node', 'pod', 'up'],
    ['its node', 'pod', 'down'],
    ['its node', 'node', 'up'],
    ['its node', 'node', 'down'],
  ] as const)('by %s: a transfer of a %s (%s) goes on', async (where, who, direction) => {
    const { a, b } = pair;
    const from = who === 'pod' ? a.pods[1].netns : a.cluster.nodes[1]!.netns;
    const places = where === 'the gateways' ? [a, b].map(({ link }) => link.pod.netns) : [a.cluster.nodes[1]!.netns];
    const node = a.cluster.nodes[1]!.netns;
    const attempt: Attempt = {
      start: (bytes) => from.transfer(a.view(b.pods[1].ip), port, bytes, direction),
      carried: () => bytesOf(node),
      places,
    };
    await outlives(attempt, 96_000_000);
  });
});
