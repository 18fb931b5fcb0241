/** Topology T3: a hub and two leaves, all with the same ranges; and hosts outside any cluster, behind the hub. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NetnsFixture } from '../../../harness/netns.ts';
import type { TestPod } from '../../../harness/netns-cluster.ts';
import { carried } from './carried.ts';
import { type Attempt, outlives } from './forgotten.ts';
import { fromLeaf, type Hub, hostIp, openHub } from './hub.ts';
import { port } from './pair.ts';

const clusters = new NetnsFixture();
let topology: Hub;
beforeAll(async () => {
  topology = await openHub(clusters);
});
afterAll(async () => {
  await topology?.close();
  await clusters.close();
});

describe('a hub and two leaves with the same ranges', () => {
  test('the same real address of both leaves is two addresses on one node', async () => {
    const { hubPods, podsA, podB } = topology;
    for (const pod of hubPods) {
      expect(await pod.netns.who('10.71.1.5', port)).toBe(pod.ip.replace('10.200.', '10.71.'));
      expect(await pod.netns.who('10.81.1.5', port)).toBe(pod.ip.replace('10.200.', '10.71.'));
    }
    const receivedBy = async (pod: TestPod) =>
      ((await (await pod.netns.agent()).ask('received', {})) as { bytes: number }).bytes;
    const before = [await receivedBy(podsA[0]), await receivedBy(podB)];
    await hubPods[0].netns.udp('10.81.1.5', port, { size: 100 });
    expect([await receivedBy(podsA[0]), await receivedBy(podB)]).toEqual([before[0], before[1]! + 100]);
  });

  test('from leaf to leaf each pod is seen as an address of its own', async () => {
    const { exposed, podsA, podB } = topology;
    const toB = fromLeaf(exposed.podB.exposed);
    expect(await podsA[0].netns.who(toB, port)).toBe(fromLeaf(exposed.podA1.exposed));
    expect(await podsA[1].netns.who(toB, port)).toBe(fromLeaf(exposed.podA2.exposed));
    expect(await podB.netns.who(fromLeaf(exposed.podA2.exposed), port)).toBe(toB);
  });

  test('packets between leaves go from gateway to gateway, not by a node', async () => {
    const { exposed, hub, podsA } = topology;
    const sent = async () =>
      Promise.all(hub.nodes.map(async ({ netns }) => (await carried(netns, 'liqo-overlay', 'rx')).packets));
    const before = await sent();
    await podsA[0].netns.who(fromLeaf(exposed.podB.exposed), port);
    expect(await sent()).toEqual(before);
  });

  test('TCP between leaves crosses the hub in segments of many packets each', async () => {
    const { exposed, hub, podsA } = topology;
    const [toA, toB] = hub.links;
    const places = [
      ["out of A's tunnel", toA!, 'liqo-tunnel', 'rx'],
      ['to the other gateway', toB!, 'liqo-overlay', 'rx'],
      ["into B's tunnel", toB!, 'liqo-tunnel', 'tx'],
    ] as const;
    const look = () => Promise.all(places.map(([, { pod }, device, way]) => carried(pod.netns, device, way)));
    const before = await look();
    await podsA[0].netns.transfer(fromLeaf(exposed.podB.exposed), port, 16_000_000, 'up');
    for (const [index, after] of (await look()).entries()) {
      const { bytes, packets } = before[index]!;
      expect((after.bytes - bytes) / (after.packets - packets), places[index]![0]).toBeGreaterThan(8 * 1340);
    }
  });

  test('a transfer between leaves outlives the memory of all gateways', async () => {
    const { exposed, hub, leaves, podsA } = topology;
    const attempt: Attempt = {
      start: (bytes) => podsA[0].netns.transfer(fromLeaf(exposed.podB.exposed), port, bytes, 'down'),
      carried: async () => (await carried(podsA[0].netns, 'eth0', 'rx')).bytes,
      places: [hub, ...leaves].flatMap(({ links }) => links).map(({ pod }) => pod.netns),
    };
    await outlives(attempt, 64_000_000);
  });
});

describe('a host behind the hub', () => {
  const fromA = () => fromLeaf(topology.exposed.host.exposed);

  test('that knows the way back sees the pod itself', async () => {
    const { host, hub, podsA } = topology;
    await host.ip([`route add 10.71.0.0/16 via ${hub.nodes[0]!.ip}`]);
    expect(await podsA[0].netns.who(fromA(), port)).toBe('10.71.1.5');
    await host.ip([`route del 10.71.0.0/16 via ${hub.nodes[0]!.ip}`]);
  });

  test('that does not, sees a node when its IP asks for masquerade; pods of the hub may use the address, too', async () => {
    const { exposed, hub, hubPods, podsA } = topology;
    await expect(podsA[1].netns.who(fromA(), port)).rejects.toThrow();
    hub.masqueradedHosts = [{ host: hostIp, exposed: exposed.host.exposed }];
    await hub.program();
    expect(await podsA[1].netns.who(fromA(), port)).toBe(hub.nodes[0]!.ip);
    expect(await hubPods[1].netns.who(exposed.host.exposed, port)).toBe(hub.nodes[1]!.ip);
  });
});

describe('a Service of the hub', () => {
  const service = '10.96.0.9';
  /** What kube-proxy makes of the Service on every node: one endpoint. */
  const kubeProxy = (endpoint: string): string =>
    `add table ip kube\nflush table ip kube\nadd chain ip kube services { type nat hook prerouting priority dstnat; }\nadd rule ip kube services ip daddr ${service} dnat to ${endpoint}\n`;

  test('is reached by its exposed address wherever its pod runs, and no more once that is taken back', async () => {
    const { hub, hubPods, podsA } = topology;
    const before = { exposed: hub.exposed, hosts: hub.hosts, masqueradedHosts: hub.masqueradedHosts };
    const own = { host: service, exposed: '10.70.4.2' };
    hub.exposed = [...before.exposed, { ip: service, exposed: own.exposed }];
    hub.hosts = [...before.hosts, service];
    hub.masqueradedHosts = [...before.masqueradedHosts, own];
    await hub.program();
    const callers: string[] = [];
    for (const { ip } of hubPods) {
      for (const { netns } of hub.nodes) await netns.nft(kubeProxy(ip));
      callers.push(await podsA[0].netns.who(fromLeaf(own.exposed), port));
    }
    // The node of the gateway, by whichever of its addresses leads to that pod: the pod would answer 10.71 past that node.
    for (const caller of callers) expect(caller).not.toMatch(/^10\.71\./);
    Object.assign(hub, before);
    await hub.program();
    await expect(podsA[0].netns.who(fromLeaf(own.exposed), port)).rejects.toThrow();
    for (const { netns } of hub.nodes) await netns.nft('delete table ip kube\n');
  });
});
