/** A node whose machine was replaced: the same name and addresses, another network card. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../../harness/eventually.ts';
import { macOf } from '../../../harness/mac.ts';
import type { TestNode } from '../../../harness/netns-cluster.ts';
import { NodeClusters, port } from './node-clusters.ts';

const clusters = new NodeClusters();
beforeAll(async () => {
  await clusters.open();
  await clusters.bringUp();
  // What a kernel has once learned it keeps for an hour here, and takes from no packet that comes by: elsewhere that is 15 to 45 s, and luck.
  await clusters.a.nodes[0]?.netns.sysctl({
    'net.ipv4.neigh.eth0.base_reachable_time_ms': 3_600_000,
    'net.ipv4.neigh.eth0.locktime': 360_000,
  });
}, 300_000);
afterAll(() => clusters.close());

/** What one node takes the other's network card to be; undefined while it does not know. */
const cardOf = async (at: TestNode, of: TestNode): Promise<string | undefined> =>
  (JSON.parse((await at.netns.exec('ip', '-j', 'neigh', 'show', 'to', of.ip)) || '[]') as { lladdr?: string }[])[0]
    ?.lladdr;

const answers = async (at: TestNode, of: TestNode): Promise<boolean> =>
  (await at.netns.tryExec('ping', '-c', '1', '-W', '1', of.ip)).code === 0;

test('is found at its new network card as soon as its Node has another boot ID', async () => {
  const [stays, replaced] = clusters.a.nodes as [TestNode, TestNode];
  const [before, after] = [macOf('a-node2 eth0'), macOf('the card of another machine')];
  // The node process drops what is known of the node at its first boot ID, too. Only after that the former card stays known.
  const none = macOf('a machine that never was');
  await stays.netns.exec('ip', 'neigh', 'replace', replaced.ip, 'lladdr', none, 'dev', 'eth0', 'nud', 'reachable');
  await clusters.reportBoot(replaced);
  await eventually('the former card is known', async () => {
    await answers(stays, replaced);
    return (await cardOf(stays, replaced)) === before;
  });
  // A request of the new machine for our address would tell its card: nothing asks in time elsewhere either, and here nothing is learned from it.
  const learnsFromRequests = (learns: boolean) =>
    stays.netns.sysctl({ 'net.ipv4.conf.eth0.arp_ignore': learns ? 0 : 8 });
  await learnsFromRequests(false);
  await clusters.reboot(replaced, async () => undefined, after);
  await eventually('the new machine is up', async () => {
    await replaced.netns.exec('ping', '-c', '1', '-W', '1', '172.30.255.254');
    return true;
  });
  expect(await answers(stays, replaced)).toBe(false);
  expect(await cardOf(stays, replaced)).toBe(before);
  await learnsFromRequests(true);
  await clusters.reportBoot(replaced);
  const began = performance.now();
  await eventually('the new card is known', async () => {
    await answers(stays, replaced);
    return (await cardOf(stays, replaced)) === after;
  });
  console.log(`the replaced node is found ${Math.round(performance.now() - began)} ms after its boot ID was written`);
  for (const pod of clusters.podsA)
    await eventually('traffic flows', () => pod.netns.who(clusters.viewOf(clusters.podB), port), { everyMs: 50 });
}, 240_000);

test('a process that starts does not trust what the kernel has learned while none ran', async () => {
  const [stays, other] = clusters.a.nodes as [TestNode, TestNode];
  await clusters.reportBoot(other);
  await clusters.endProcess(stays, 'SIGKILL');
  const wrong = macOf('a machine that is gone');
  await stays.netns.exec('ip', 'neigh', 'replace', other.ip, 'lladdr', wrong, 'dev', 'eth0', 'nud', 'reachable');
  clusters.startProcess(stays);
  await eventually('its card is known', async () => {
    await answers(stays, other);
    const card = await cardOf(stays, other);
    return card !== undefined && card !== wrong;
  });
}, 120_000);
