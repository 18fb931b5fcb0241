/** Throughput of each leg between pods of two clusters, of leaf to leaf, and what a large cluster costs to program. Real kernel, wireguard-go. */
import { performance } from 'node:perf_hooks';
import { type Namespace, openNamespace } from '#agent/network/kernel/namespace.ts';
import type { GatewayModel } from '#agent/network/plan/gateway-model.ts';
import { planGateway } from '#agent/network/plan/gateway-plan.ts';
import { formatAddress } from '#shared/domain/cidr.ts';
import { connect, type Netns, NetnsFixture } from '#test/harness/netns.ts';
import { startWireGuard, wireGuardKeys } from '#test/harness/netns-cluster.ts';
import { processorSeconds } from '#test/harness/processor-seconds.ts';
import { carried } from '#test/system/network/kernel/carried.ts';
import { fromLeaf, openHub } from '#test/system/network/kernel/hub.ts';
import { identical, openPair, type Pair, port } from '#test/system/network/kernel/pair.ts';
import { type BenchOptions, type BenchResult, median, medianPhases, thisMachine } from '../result.ts';
import { openBareChain } from './bare-chain.ts';

const defaultRuns = 5;
/** A second or two each through a tunnel on a small machine. */
const bytes = 256_000_000;
const barePort = 9000;
const large = { nodes: 200, pods: 5_000 } as const;

export async function run({ root, runs = defaultRuns, log }: BenchOptions): Promise<BenchResult> {
  const legs = await legsBetweenPods(runs, log);
  const hub = await leafToLeaf(runs, log);
  const scale = await programming(log);
  const phases = { ...medianPhases(legs), ...medianPhases(hub), ...scale };
  const samples = legs.map((leg) => leg['pod to pod'] ?? Number.NaN);
  return { name: 'dataplane', unit: 'Mbit/s', value: median(samples), samples, phases, machine: thisMachine(root) };
}

const mbit = async (from: Netns, address: string, to: number): Promise<number> =>
  (await from.transfer(address, to, bytes, 'up')).mbitPerSecond;

/** One run after the other through all legs, so that a busy machine slows them alike. */
async function legsBetweenPods(runs: number, log: (line: string) => void): Promise<Record<string, number>[]> {
  const clusters = new NetnsFixture();
  let pair: Pair | undefined;
  const samples: Record<string, number>[] = [];
  try {
    pair = await openPair(clusters, identical);
    const { a, b } = pair;
    for (const { link } of [a, b]) await link.pod.netns.serve(barePort);
    const ends = await openEnds(clusters);
    for (let i = 0; i < runs; i += 1) {
      const nothing = await mbit(ends.from, ends.address, barePort);
      const whole = await mbit(a.pods[1].netns, a.view(b.pods[1].ip), port);
      // nothing but wireguard-go answers in a gateway; what keeps it so is away for the bare legs
      for (const { link } of [a, b]) await link.pod.netns.exec('nft', 'delete', 'table', 'ip', 'isthmus');
      const bare = await mbit(a.link.pod.netns, '169.254.18.1', barePort);
      const legA = await mbit(a.pods[1].netns, a.link.overlayAddress, barePort);
      const legB = await mbit(b.pods[1].netns, b.link.overlayAddress, barePort);
      for (const { cluster } of [a, b]) await cluster.program();
      const expected = 1 / (1 / bare + 1 / legA + 1 / legB);
      // stricter: each of the three has a sender and a receiver of its own, and the whole way has them once
      const strictly = 1 / (1 / bare + 1 / legA + 1 / legB - 2 / nothing);
      samples.push({
        'pod to pod': whole,
        'bare wireguard-go between gateways': bare,
        'node leg A (pod, node, overlay, gateway)': legA,
        'node leg B': legB,
        'sender, receiver and a cable': nothing,
        'bare minus node legs': expected,
        'the same, ends counted once': strictly,
        'ratio: pod to pod / bare minus node legs': whole / expected,
        'ratio: pod to pod / the same, ends counted once': whole / strictly,
        'ratio: pod to pod / bare': whole / bare,
      });
      log(
        `run ${i + 1}: pod to pod ${whole.toFixed(0)}, bare ${bare.toFixed(0)}, legs ${legA.toFixed(0)} and ${legB.toFixed(0)}, ends ${nothing.toFixed(0)} Mbit/s`,
      );
    }
  } finally {
    await pair?.close();
    await clusters.close();
  }
  return samples;
}

/** Costs of every transfer, for every path. */
async function openEnds(clusters: NetnsFixture): Promise<{ from: Netns; address: string }> {
  const [from, to] = [await clusters.add('sender'), await clusters.add('receiver')];
  await connect({ netns: from, device: 'eth0' }, { netns: to, device: 'eth0' });
  await from.ip(['address add 192.0.2.1/24 dev eth0']);
  await to.ip(['address add 192.0.2.2/24 dev eth0']);
  await to.serve(barePort);
  return { from, address: '192.0.2.2' };
}

async function leafToLeaf(runs: number, log: (line: string) => void): Promise<Record<string, number>[]> {
  const clusters = new NetnsFixture();
  const samples: Record<string, number>[] = [];
  const hub = await openHub(clusters).catch(async (error) => {
    await clusters.close();
    throw error;
  });
  try {
    const tunnels = [hub.hub, ...hub.leaves].flatMap(({ links }) => links.map(({ wireguard }) => wireguard.pid ?? 0));
    const measured = async (address: string): Promise<{ speed: number; cpu: number; busiest: number }> => {
      const before = tunnels.map(cpuSeconds);
      const speed = await mbit(hub.podsA[0].netns, address, port);
      const used = tunnels.map((pid, at) => ((cpuSeconds(pid) - (before[at] ?? 0)) * 1e9) / bytes);
      return { speed, cpu: used.reduce((a, b) => a + b), busiest: Math.max(...used) };
    };
    const [, second] = hub.hub.links;
    const bare = await openBareChain(clusters, barePort);
    for (let i = 0; i < runs; i += 1) {
      const single = await measured('10.71.1.5');
      const between = await measured(fromLeaf(hub.exposed.podB.exposed));
      const bareSingle = await mbit(bare.from, bare.near, barePort);
      const bareBetween = await mbit(bare.from, bare.far, barePort);
      const inTwo = second === undefined ? undefined : await carried(second.pod.netns, 'liqo-tunnel', 'tx');
      samples.push({
        'single link': single.speed,
        'leaf to leaf': between.speed,
        'ratio: leaf to leaf / single link': between.speed / single.speed,
        'bare wireguard-go, one link': bareSingle,
        'bare wireguard-go, two links in a row': bareBetween,
        'ratio: bare, two links in a row / one link': bareBetween / bareSingle,
        'CPU s per GB of both wireguard-go, single link': single.cpu,
        'CPU s per GB of all four wireguard-go, leaf to leaf': between.cpu,
        'CPU s per GB of the busiest wireguard-go, single link': single.busiest,
        'CPU s per GB of the busiest wireguard-go, leaf to leaf': between.busiest,
        'bytes per segment into the second tunnel of the hub': inTwo ? inTwo.bytes / inTwo.packets : Number.NaN,
      });
      log(
        `run ${i + 1}: single link ${single.speed.toFixed(0)}, leaf to leaf ${between.speed.toFixed(0)}, bare ${bareSingle.toFixed(0)} and ${bareBetween.toFixed(0)} Mbit/s; wireguard-go ${single.cpu.toFixed(1)} and ${between.cpu.toFixed(1)} s/GB`,
      );
    }
  } finally {
    await hub.close();
    await clusters.close();
  }
  return samples;
}

const cpuSeconds = (pid: number): number => processorSeconds(pid).own;

/** A gateway of a cluster of 200 nodes whose 5,000 pods are all outside their nodes' ranges. */
async function programming(log: (line: string) => void): Promise<Record<string, number>> {
  const clusters = new NetnsFixture();
  let host: Namespace | undefined;
  try {
    const netns = await clusters.add('large');
    await startWireGuard(netns);
    host = openNamespace({ pid: netns.pid });
    const model = largeModel(clusters.file(wireGuardKeys().privateKey));
    const space = host;
    const timed = async (work: () => Promise<unknown>): Promise<number> => {
      const started = performance.now();
      await work();
      return performance.now() - started;
    };
    const first = await timed(() => space.apply(planGateway(model)));
    const again = await timed(() => space.apply(planGateway(model)));
    const stray = { ip: '10.201.255.1', node: 'node7' };
    const one = await timed(() => space.apply(planGateway({ ...model, strayPods: [...model.strayPods, stray] })));
    const planning = await timed(async () => planGateway(model));
    const state = planGateway(model);
    log(`${large.nodes} nodes, ${large.pods} pods: ${first.toFixed(0)} ms, one more ${one.toFixed(0)} ms`);
    return {
      [`ms to program ${large.nodes} nodes and ${large.pods} pods`]: first,
      'ms to see that nothing changed': again,
      'ms from one more pod to its route': one,
      'ms to plan': planning,
      'routes in the gateway': state.routes.length,
      'rules in the gateway': state.rules.length,
    };
  } finally {
    await host?.close();
    await clusters.close();
  }
}

function largeModel(privateKeyFile: string): GatewayModel {
  const nodes = Array.from({ length: large.nodes }, (_, i) => ({
    name: `node${i}`,
    overlayAddress: formatAddress(0x0a50_0001 + i),
    underlayAddress: formatAddress(0xac1e_0001 + i),
    sources: [formatAddress(0xac1e_0001 + i)],
    podCidrs: [`10.200.${i}.0/24`],
    own: i === 0,
  }));
  return {
    link: 'ns/large',
    role: 'server',
    mtu: 1340,
    local: { pods: ['10.200.0.0/15'], external: '10.70.0.0/16' },
    remote: {
      pods: [{ real: '10.200.0.0/16', view: '10.71.0.0/16' }],
      external: [{ real: '10.70.0.0/16', view: '10.72.0.0/16' }],
    },
    overlay: { address: '10.80.9.1', vni: 77 },
    nodes,
    strayPods: Array.from({ length: large.pods }, (_, i) => ({
      ip: formatAddress(0x0ac9_0001 + i),
      node: `node${i % large.nodes}`,
    })),
    exposed: nodes.map(({ overlayAddress }, i) => ({ ip: overlayAddress, exposed: formatAddress(0x0a46_0100 + i) })),
    hosts: [],
    siblings: [],
    wireGuard: { implementation: 'userspace', listenPort: 51_840, privateKeyFile },
    firewalls: [],
    routes: [],
  };
}
