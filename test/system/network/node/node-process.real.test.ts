/** The node process on real kernels' namespaces and a real API server: links come up, fail over, and survive restarts and kills of the process. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openNamespace } from '#agent/network/kernel/namespace.ts';
import { userspaceTunnel } from '#agent/network/kernel/wireguard.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { waitUntilStable } from '#test/harness/wait-until-stable.ts';
import { eventually } from '../../../harness/eventually.ts';
import type { Streamed } from '../../../harness/netns.ts';
import { nodePort, type TestPod } from '../../../harness/netns-cluster.ts';
import { addLeaf } from './leaf.ts';
import { NodeClusters, port } from './node-clusters.ts';
import { peerId, tenant } from './objects.ts';

const clusters = new NodeClusters();
/** B's pod as A sees it. */
const view = (): string => clusters.viewOf(clusters.podB);

beforeAll(async () => {
  await clusters.open();
  await clusters.bringUp();
}, 300_000);
afterAll(() => clusters.close());

test('two node processes bring a link up, with one active replica, its path measured and both nodes known', async () => {
  const status = await eventually('Connected', async () => {
    const found = await clusters.connection();
    return found?.value === 'Connected' && found;
  });
  expect(status).toMatchObject({ mtu: 1340, peerEndpoint: `${clusters.b.nodes[1]!.ip}:31820` });
  expect(status.latency?.value).toMatch(/^\d+(ms|μs)$/);
  for (const pod of clusters.podsA) expect(await pod.netns.who(view(), port)).toMatch(/^10\.71\./);
  const internal = await eventually('nodes know their addresses', async () => {
    const all = await clusters.cluster.api.list(networkKinds.internalNodes);
    return all.every(({ status: s }) => s?.nodeIP?.local && s.nodeIP.remote) && all;
  });
  expect(internal.map(({ status: s }) => s?.nodeIP)).toEqual(
    clusters.a.nodes.map(({ bridgeIp, ip }) => ({ local: bridgeIp, remote: ip })),
  );
  expect(internal[0]?.metadata.annotations?.['networking.isthmus.dev/wireguard']).toMatch(/^(kernel|userspace)$/);
  // The network that this node and its neighbours share.
  expect(internal[0]?.metadata.annotations?.['networking.isthmus.dev/node-networks']).toMatch(/(^|,)[\d.]+\/\d+/);
});

test('overlay packets for the gateway of a node go past its bridge, straight to the port', async () => {
  for (const { netns } of clusters.a.nodes) {
    const shortCut = async () =>
      (await netns.tryExec('nft', 'list', 'table', 'netdev', 'isthmus')).stdout.includes(
        'udp dport 6091 fwd to "pod101"',
      );
    await eventually('the short cut is there', shortCut);
  }
});

test('its memory stays small', async () => {
  for (const node of clusters.a.nodes) {
    const status = readFileSync(`/proc/${clusters.processes.get(node.name)?.pid}/status`, 'utf8');
    const rss = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
    console.log(`node process of ${node.name}: ${rss.toFixed(1)} MiB RSS`);
    expect(rss).toBeLessThan(80);
  }
});

test('an active gateway that is killed under traffic costs a moment, and no transfer', async () => {
  const [client] = clusters.podsA;
  const before = await eventually('one active replica', () => clusters.active());
  const agent = await client.netns.agent();
  const stream = agent.ask('stream', { address: view(), port, everyMs: 10, forMs: 9_000 });
  const transfer = client.netns.transfer(view(), port, 240_000_000, 'down');
  let over = false;
  transfer.then(
    () => {
      over = true;
    },
    () => undefined,
  );
  const arrived = async () =>
    ((await (await clusters.podB.netns.agent()).ask('received', {})) as { bytes: number }).bytes;
  await eventually('datagrams arrive', async () => (await arrived()) > 20, { everyMs: 20 });
  expect(over).toBe(false);
  before.wireguard.kill('SIGKILL');
  const after = await eventually('another active replica', async () => {
    const now = await clusters.active();
    return now !== undefined && now !== before && now;
  });
  expect(after.name).not.toBe(before.name);
  const { longestGapMs, sent, answered, answeredAfterGap } = (await stream) as Streamed;
  await transfer;
  console.log(`failover: longest gap ${Math.round(longestGapMs)} ms, ${answered} of ${sent} datagrams answered`);
  expect(answeredAfterGap).toBeGreaterThan(0);
  await clusters.restartGateway(before);
});

test('a peer that is reached at another address from now on is followed as soon as that is written down', async () => {
  const [, node] = clusters.b.nodes;
  const [before, after] = [node!.ip, '172.30.2.99'];
  await node!.netns.ip([`address add ${after}/16 dev eth0`]);
  await node!.netns.nft(
    `table ip moved {\nchain in { type filter hook prerouting priority -400; ip daddr ${before} udp dport ${nodePort} drop; }\n}\n`,
  );
  const candidates = { 'networking.isthmus.dev/peer-candidates': JSON.stringify([`${after}:${nodePort}`]) };
  const began = performance.now();
  await clusters.cluster.api.mergePatch(
    networkKinds.gatewayClients,
    { namespace: tenant, name: peerId },
    { metadata: { annotations: candidates } },
  );
  const [client] = clusters.podsA;
  await eventually('traffic flows by the new address', async () => {
    const peerEndpoint = (await clusters.connection())?.peerEndpoint;
    return peerEndpoint === `${after}:${nodePort}` && (await client.netns.who(view(), port)) !== '';
  });
  const tookMs = Math.round(performance.now() - began);
  console.log(`the peer's new address in use after ${tookMs} ms`);
  await node!.netns.nft('delete table ip moved\n');
});

test('a client that gets no answer dials from another port, and the next node process leaves that session alone', async () => {
  const active = await eventually('one active replica', () => clusters.active());
  const tunnel = userspaceTunnel(active.pod.netns.pid, 'liqo-tunnel');
  const listenPort = async () => (await tunnel.read()).listenPort;
  expect(await listenPort()).toBe(51_840);
  // kube-proxy of B restarts: until it is ready, its node takes the packets for its own, and keeps to that.
  const { netns } = clusters.b.nodes[1]!;
  await netns.exec('nft', 'delete', 'table', 'ip', 'nodeport');
  await netns.exec('conntrack', '-F');
  const client = await clusters.cluster.api.get(networkKinds.gatewayClients, { namespace: tenant, name: peerId });
  const more = JSON.parse(client?.metadata.annotations?.['networking.isthmus.dev/peer-candidates'] ?? '[]') as string[];
  const astray = async (): Promise<string> =>
    netns.exec('conntrack', '-L', '-p', 'udp', '--reply-port-src', `${nodePort}`);
  const dialled = [clusters.b.nodes[1]!.ip, ...more.map((text) => text.split(':')[0])];
  await eventually('every candidate leads astray', async () => {
    const flows = await astray();
    return dialled.every((address) => flows.includes(`dst=${address} `));
  });
  await clusters.b.exposeNodePort(clusters.atB);
  const began = performance.now();
  const moved = async () => (await listenPort()) !== 51_840 && listenPort();
  const another = await eventually('another port', moved, { withinMs: 60_000 });
  const [caller] = clusters.podsA;
  await eventually('traffic flows', () => caller.netns.who(view(), port));
  console.log(`from port ${another} after ${Math.round(performance.now() - began)} ms`);

  const { node } = active.pod;
  await clusters.endProcess(node, 'SIGKILL');
  clusters.startProcess(node);
  await node.netns.exec('ip', 'rule', 'del', 'priority', '101');
  const repaired = async () => (await node.netns.exec('ip', 'rule')).includes('101:');
  await eventually('the next process has programmed the node', repaired);
  const isConnected = async () => (await clusters.connection())?.value === 'Connected';
  await eventually('and keeps the link', isConnected);
  expect(await caller.netns.who(view(), port)).toMatch(/^10\.71\./);
  expect(await listenPort()).toBe(another);
  // No process of ours on that node deletes the stale conntrack entry: it expires only half a minute later, and a rebooted client begins at its own port.
  await netns.tryExec('conntrack', '-D', '-p', 'udp', '--reply-port-src', `${nodePort}`);
});

const restingKernel = (node: string): Promise<string> =>
  waitUntilStable(node, async () => (await clusters.kernelState())[node] ?? '', { looks: 2 });

test.each([
  { what: 'a policy rule', undo: ['ip', 'rule', 'del', 'priority', '101'] },
  { what: 'the nft table', undo: ['nft', 'delete', 'table', 'ip', 'isthmus'] },
  { what: 'the overlay device', undo: ['ip', 'link', 'del', 'liqo-overlay'] },
])('$what that is deleted on a node is back at once', async ({ undo }) => {
  const [node] = clusters.a.nodes;
  const before = await restingKernel(node!.name);
  const [program, ...args] = undo;
  await node!.netns.exec(program!, ...args);
  const began = performance.now();
  const repaired = async () => {
    expect((await clusters.kernelState())[node!.name]).toBe(before);
    return true;
  };
  // Sooner than the periodic resync of a node process.
  await eventually('repaired', repaired, { withinMs: 15_000, everyMs: 50 });
  console.log(`repaired after ${Math.round(performance.now() - began)} ms`);
});

test('the status of a configuration says how each host fares; deleting it removes its rules', async () => {
  const put = (name: string, rules: object) =>
    clusters.put(networkKinds.firewallConfigurations, {
      apiVersion: 'networking.liqo.io/v1beta1',
      kind: 'FirewallConfiguration',
      metadata: {
        name,
        namespace: 'liqo',
        labels: {
          'networking.liqo.io/firewall-category': 'fabric',
          'networking.liqo.io/firewall-subcategory': 'all-nodes',
        },
      },
      spec: {
        table: {
          name,
          family: 'IPV4',
          chains: [{ name: 'forward', type: 'filter', hook: 'forward', policy: 'accept', priority: 0, rules }],
        },
      },
    });
  const rule = (value: string) => ({
    filterRules: [{ name: 'r', match: [{ op: 'eq', ip: { value, position: 'src' } }], action: 'accept' }],
  });
  const conditions = async (name: string) => {
    const found = await clusters.cluster.api.get(networkKinds.firewallConfigurations, { namespace: 'liqo', name });
    return found?.status?.conditions ?? [];
  };
  await put('good', rule('10.1.2.3'));
  await put('bad', rule('not-an-address'));
  const hosts = clusters.a.nodes.map(({ name }) => name);
  await eventually('applied on both', async () => {
    const list = await conditions('good');
    return list.length === 2 && list.every(({ host, type }) => hosts.includes(host) && type === 'Applied');
  });
  const failed = await eventually('refused on both', async () => {
    const list = await conditions('bad');
    return list.length === 2 && list.every(({ type }) => type === 'Error') && list;
  });
  expect(failed[0]?.message).toContain('not-an-address');
  expect(await clusters.a.nodes[0]!.netns.exec('nft', 'list', 'tables')).toContain('table ip good');
  for (const name of ['good', 'bad'])
    await clusters.cluster.api.delete(networkKinds.firewallConfigurations, { namespace: 'liqo', name });
  await eventually(
    'gone',
    async () => !(await clusters.a.nodes[0]!.netns.exec('nft', 'list', 'tables')).includes('good'),
  );
});

test('killed at random moments, and both nodes rebooted, with objects changed meanwhile, it ends where a fresh start ends', async () => {
  const exposed = (name: string, ip: string, as: string) => ({
    apiVersion: 'ipam.liqo.io/v1alpha1',
    kind: 'IP',
    metadata: { name, namespace: 'liqo' },
    spec: { ip, masquerade: true },
    status: { ip: as, cidr: clusters.a.external },
  });
  await clusters.put(networkKinds.ips, exposed('stays', '172.30.9.1', '10.70.9.1'));
  for (let round = 0; round < 6; round++) {
    for (const node of clusters.a.nodes) {
      await clusters.endProcess(node, 'SIGKILL');
      if (round % 2 === 0) await clusters.put(networkKinds.ips, exposed('goes', '172.30.9.2', '10.70.9.2'));
      else await clusters.cluster.api.delete(networkKinds.ips, { namespace: 'liqo', name: 'goes' });
      clusters.startProcess(node);
      await new Promise((resolve) => setTimeout(resolve, 200 + Math.random() * 1_200));
    }
  }
  for (const [index, node] of clusters.a.nodes.entries()) {
    await clusters.reboot(node, async () => {
      if (index === 0) await clusters.put(networkKinds.ips, exposed('goes', '172.30.9.2', '10.70.9.2'));
      else await clusters.cluster.api.delete(networkKinds.ips, { namespace: 'liqo', name: 'goes' });
    });
    await clusters.reportBoot(node);
    const began = performance.now();
    for (const pod of clusters.podsA)
      await eventually('traffic flows', () => pod.netns.who(view(), port), { withinMs: 30_000, everyMs: 50 });
    console.log(`${node.name} rebooted: every pod calls the peer ${Math.round(performance.now() - began)} ms later`);
  }
  const settled = async () => {
    const active = await clusters.active();
    if (active === undefined || (await clusters.connection())?.value !== 'Connected') return undefined;
    const state = await clusters.kernelState();
    if (Object.values(state).some((text) => text.includes('10.70.9.2') || !text.includes('table ip isthmus')))
      return undefined;
    const again = await clusters.kernelState();
    return JSON.stringify(again) === JSON.stringify(state) && { state, active };
  };
  for (const pod of clusters.podsA)
    await eventually('traffic flows', () => pod.netns.who(view(), port), { withinMs: 20_000 });
  const chaos = await eventually('settled after chaos', settled);
  for (const node of clusters.a.nodes) await clusters.endProcess(node, 'SIGKILL');
  for (const pid of [
    ...clusters.a.nodes.map(({ netns }) => netns.pid),
    ...clusters.replicas.map(({ pod }) => pod.netns.pid),
  ]) {
    const namespace = openNamespace({ pid });
    await namespace.sweep();
    namespace.close();
  }
  for (const replica of clusters.replicas) {
    replica.wireguard.kill('SIGKILL');
    await clusters.restartGateway(replica);
  }
  // The former active replica first, so that the comparison is of like with like.
  const order = [...clusters.a.nodes].sort((a) => (a.name === chaos.active.pod.node.name ? -1 : 1));
  for (const node of order) {
    clusters.startProcess(node);
    await eventually('the same replica is active', async () => (await clusters.active())?.name === chaos.active.name);
  }
  const same = async () => JSON.stringify(await clusters.kernelState()) === JSON.stringify(chaos.state);
  // Waits; the comparison below is the one that says what differs.
  await eventually('the same state', same, { withinMs: 30_000 }).catch(() => undefined);
  expect(await clusters.kernelState()).toEqual(chaos.state);
  expect(await eventually('traffic flows', () => clusters.podsA[0].netns.who(view(), port))).toMatch(/^10\.71\./);
}, 300_000);

test('silence for ten seconds is an Error; an answer makes it Connected again', async () => {
  await eventually('Connected', async () => (await clusters.connection())?.value === 'Connected');
  clusters.silence();
  const began = performance.now();
  await eventually('Error', async () => (await clusters.connection())?.value === 'Error');
  // The last answer may have been a few seconds old: a busy machine pings late.
  expect(performance.now() - began).toBeGreaterThan(6_000);
  await clusters.answerPings();
  await eventually('Connected again', async () => (await clusters.connection())?.value === 'Connected');
});

test('pods of two peers reach each other through this cluster by IP objects, and each is seen as itself', async () => {
  const leaf = await addLeaf(clusters);
  const exposed = { atB: '10.70.3.7', atLeaf: '10.70.3.5' };
  for (const [name, ip, as] of [
    ['at-b', view(), exposed.atB],
    ['at-leaf', leaf.view(leaf.pod.ip), exposed.atLeaf],
  ] as const)
    await clusters.put(networkKinds.ips, {
      apiVersion: 'ipam.liqo.io/v1alpha1',
      kind: 'IP',
      metadata: { name, namespace: 'liqo', labels: { 'offloading.liqo.io/pod-name': name } },
      spec: { ip },
      status: { ip: as, cidr: clusters.a.external },
    });
  /** How both peers see the hub's external range. */
  const seen = (address: string): string => address.replace('10.70.', '10.72.');
  /** The two IP objects may be programmed one after the other: until both are, a caller is seen under its own address. */
  const isSeenAs = (from: TestPod, to: string, wanted: string): Promise<true> =>
    eventually(
      `${from.ip} reaches ${to} and is seen as ${wanted}`,
      async () => {
        const caller = await from.netns.who(to, port);
        if (caller !== wanted) throw new Error(`it is seen as ${caller}`);
        return true as const;
      },
      { everyMs: 50 },
    );
  await isSeenAs(clusters.podB, seen(exposed.atLeaf), seen(exposed.atB));
  await isSeenAs(leaf.pod, seen(exposed.atB), seen(exposed.atLeaf));
  await leaf.cluster.close();
}, 120_000);

test('a cluster that is left loses everything of ours; otherwise the data path outlives the process', async () => {
  const [stays, leaves] = clusters.a.nodes;
  const daemonSets = { group: 'apps', version: 'v1', kind: 'DaemonSet', plural: 'daemonsets', namespaced: true };
  const labels = { app: 'isthmus-fabric' };
  const set = (annotations: object) => ({
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'isthmus-fabric', namespace: 'liqo', annotations },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'x', image: 'x' }] } },
    },
  });
  await clusters.put(daemonSets, set({}));
  const before = await restingKernel(stays!.name);
  await clusters.endProcess(stays!, 'SIGTERM');
  expect((await clusters.kernelState())[stays!.name]).toBe(before);
  await clusters.put(daemonSets, set({ 'liqo.io/uninstalling': 'true' }));
  await clusters.endProcess(leaves!, 'SIGTERM');
  const left = await leaves!.netns.exec('sh', '-c', 'nft list tables; ip rule; ip link; ip route show table all');
  expect(left).not.toMatch(/isthmus|liqo|lookup 18143|proto 143/);
});
