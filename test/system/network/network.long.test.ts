/** Two real clusters of two nodes each, with the same pod and Service ranges: what crosses the link between them, and what that survives. */
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { endpointSlices, nodes, pods, services } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { networkAnnotation, networkPort } from '#shared/domain/network-keys.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import { once } from '#test/harness/in-order.ts';
import { type Netns, NetnsFixture, type Streamed } from '#test/harness/netns.ts';
import { openProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { must } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { nothingLeft } from '../whole-clusters/inventory.ts';
import {
  type ClusterName,
  clusterNames,
  createStage,
  isReady,
  patience,
  reported,
  type Stage,
} from '../whole-clusters/stage.ts';
import { container, pod } from '../whole-clusters/workloads.ts';
import { visit } from './neighbour.ts';
import { networkTest } from './network-test.ts';
import { isKernelState, nodePlace, type Place, podPlace, settledKernels, type Words } from './test-pods.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'network-under-test') };
/** `ISTHMUS_KEEP_CLUSTERS=1` leaves everything running, and the next run starts from it. */
const keep = process.env.ISTHMUS_KEEP_CLUSTERS === '1';
const ranges = { nodes: 2, podCidr: '10.50.0.0/16', serviceCidr: '10.150.0.0/16' } as const;
/** What each cluster calls the pods of the other: the first range that is free for it. */
const view = (ip: string): string => ip.replace(/^10\.50\./, '10.51.');
const namespace = 'crossing';
const port = 9000;
/** Of a walk over the ports of all addresses. */
const walkMs = 3_600_000;
const pass = { withinMs: 30_000, everyMs: 50 } as const;
vi.setConfig({ testTimeout: 120_000, hookTimeout: 180_000 });

const netnsWorld = new NetnsFixture();
let stage: Stage;
const podPlaces: Record<ClusterName, Place[]> = { rome: [], milan: [] };
const nodePlaces: Record<ClusterName, Place[]> = { rome: [], milan: [] };
const unpeered = new Map<string, string>();
const allNodes = (): Place[] => clusterNames.flatMap((cluster) => nodePlaces[cluster]);
const other = (cluster: ClusterName): ClusterName => (cluster === 'rome' ? 'milan' : 'rome');
const farPods = (cluster: ClusterName): Place[] => podPlaces[other(cluster)];

beforeAll(async () => {
  if (!keep) await removeProductClusters(place);
  const clusters = clusterNames.map((name) => ({ name, ...ranges }));
  const fixture = await openProductClusters({ ...place, clusters, brokerPort: 7643 });
  await Promise.all(clusterNames.map((name) => fixture.join(name)));
  stage = await createStage(fixture);
  await Promise.all(clusterNames.map(startPods));
  for (const [index, state] of (await settledKernels(allNodes(), answeredByLeaders)).entries())
    unpeered.set(allNodes()[index]!.name, state);
  stage = await createStage(fixture); // what a peering leaves behind is told apart from these pods
}, 900_000);
afterAll(async () => {
  await netnsWorld.close();
  if (!keep) await removeProductClusters(place);
}, 180_000);

/** One pod on each node, each with a server of ours beside the one it runs. */
async function startPods(cluster: ClusterName): Promise<void> {
  const bed = stage.world.cluster(cluster);
  nodePlaces[cluster] = bed.nodes.map((node) => nodePlace(netnsWorld, stage.world.bed.dir, node));
  const there = bed.nodes.map(({ name }) =>
    pod(namespace, `on-${name}`, [container(['serve'])], { labels: { app: 'near' }, nodeName: name }),
  );
  await stage.apply(cluster, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, ...there);
  for (const { metadata } of there) {
    const found = await stage.podThat(cluster, [namespace, metadata.name], 'is ready', isReady);
    const one = podPlace(netnsWorld, found);
    await one.netns.serve(port);
    podPlaces[cluster].push(one);
  }
}

/** One attempt: nothing here is tried again. The error names the routes that the node of the pod has at that moment. */
async function seenFrom(from: Place, address: string): Promise<string> {
  try {
    return await from.netns.who(address, port);
  } catch (error) {
    const node = allNodes().find(({ name }) => name === from.node);
    const routes = await node?.netns
      .exec('ip', 'route', 'show', 'table', 'all', 'root', view(ranges.podCidr))
      .catch(String);
    throw new Error(`${from.name} does not reach ${address}: ${(error as Error).message}; routes there: ${routes}`);
  }
}

const connectionOf = async (cluster: ClusterName) =>
  (await stage.api(cluster).list(networkKinds.connections, { namespace: `liqo-tenant-${other(cluster)}` }))[0];

async function activeGateway(cluster: ClusterName): Promise<Pod | undefined> {
  const found = await stage.api(cluster).list(pods, {
    namespace: `liqo-tenant-${other(cluster)}`,
    labelSelector: 'networking.liqo.io/active=true',
  });
  return found.find((one) => one.metadata.deletionTimestamp === undefined && isReady(one));
}

/** How far the peering is: what the broker says of it, both ends of the link, and the pods of both gateways. */
async function whereItIs(): Promise<string> {
  const described = stage.world.isthmus('describe', 'peering', 'rome', 'milan').then(reported, String);
  const ends = clusterNames.map(async (cluster) => {
    const found = await stage.api(cluster).list(pods, { namespace: `liqo-tenant-${other(cluster)}` });
    const gateways = found.map(({ metadata, status }) => ({ name: metadata.name, conditions: status?.conditions }));
    return `${cluster}: ${JSON.stringify({ connection: (await connectionOf(cluster))?.status, gateways })}`;
  });
  return (await Promise.all([described, ...ends])).join('\n');
}

interface Peered {
  readonly seen: readonly string[];
  readonly link: string | undefined;
  /** After the virtual node was Ready, until each pod had reached all pods of the other cluster. */
  readonly lateMs: Readonly<Record<string, number>>;
}

/** What one pod of rome is seen as by each pod of milan, or why not, the moment that the virtual node is Ready; and what the link says then. */
const peered = once(async (): Promise<Peered> => {
  const began = performance.now();
  const peering = stage.mustPeer();
  const outcome = peering.then(
    () => 'done',
    (error: Error) => error.message,
  );
  await eventually(
    'the virtual node is Ready',
    async () => {
      const node = await stage.api('rome').get(nodes, { name: 'milan' });
      return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    },
    // A patience: beside eight busy loops a peering takes 35 s, and beside the start of other clusters it took longer than 100 s.
    { withinMs: 240_000, everyMs: 10 },
  ).catch(async (error: Error) => {
    const at = await whereItIs();
    throw new Error(
      `${error.message}\n${at}\nisthmus peer, after ${Math.round(performance.now() - began)} ms: ${await outcome}`,
    );
  });
  const ready = performance.now();
  const [from] = podPlaces.rome;
  const arrivals = clusterNames.flatMap((cluster) =>
    podPlaces[cluster].map(async (each) => {
      for (const { name, ip } of farPods(cluster)) {
        const reached = () => each.netns.who(view(ip), port).catch(() => undefined);
        await eventually(`${each.name} reaches ${name}`, reached, { ...pass, everyMs: 10 });
      }
      return [each.name, Math.round(performance.now() - ready)] as const;
    }),
  );
  const seen = await Promise.all(podPlaces.milan.map((to) => seenFrom(from!, view(to.ip)).catch(String)));
  const link = (await connectionOf('rome'))?.status?.value;
  const lateMs = Object.fromEntries(await Promise.all(arrivals));
  await peering;
  // Ready says that the gateway forwards. Every other node follows the same objects with a cache of its own.
  await settledKernels(allNodes());
  return { seen, link, lateMs };
});

test('the virtual node is Ready when, and not before, a pod reaches a pod', async () => {
  const [from] = podPlaces.rome;
  const { lateMs, ...rest } = await peered();
  expect(rest).toEqual({ seen: [view(from!.ip), view(from!.ip)], link: 'Connected' });
  console.log(`pods reach the other cluster after Ready: ${JSON.stringify(lateMs)} ms`);
}, 300_000);

test.each(clusterNames)(
  'every pod of %s reaches every pod of the other by its view, and is seen by its own',
  async (cluster) => {
    await peered();
    for (const from of podPlaces[cluster])
      for (const to of farPods(cluster)) expect(await seenFrom(from, view(to.ip))).toBe(view(from.ip));
  },
);

test.each(clusterNames)(
  'every node of %s reaches every pod of the other, and has one address of its own there',
  async (cluster) => {
    await peered();
    const seen: string[][] = [];
    for (const from of nodePlaces[cluster]) {
      await from.netns.agent();
      seen.push(await Promise.all(farPods(cluster).map((to) => seenFrom(from, view(to.ip)))));
    }
    const addresses = seen.map((each) => [...new Set(each)]);
    expect(addresses.map(({ length }) => length)).toEqual([1, 1]);
    expect(new Set(addresses.flat()).size).toBe(2);
  },
);

const service = 'abroad';
/** Two pods of rome at milan, behind a Service; their addresses in rome. */
const abroad = once(async (): Promise<readonly string[]> => {
  await peered();
  const name = service;
  await stage.mustOffload(namespace, '--strategy', 'Remote');
  const labels = { app: name };
  await stage.apply('rome', ...['one', 'two'].map((each) => pod(namespace, each, [container(['serve'])], { labels })), {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace },
    spec: { type: 'NodePort', selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
  } as never);
  const offloaded = await Promise.all(
    ['one', 'two'].map((each) => stage.podThat('rome', [namespace, each], 'is ready', isReady)),
  );
  const twins = await Promise.all(
    offloaded.map(({ metadata }) => stage.podThat('milan', [`${namespace}-rome`, metadata.name], 'is ready', isReady)),
  );
  const addresses = offloaded.map(({ status }) => status?.podIP ?? '');
  expect(addresses).toEqual(twins.map(({ status }) => view(status?.podIP ?? '')));
  await eventually(
    'the EndpointSlice has both',
    async () => {
      const slices = await stage
        .api('rome')
        .list(endpointSlices, { namespace, labelSelector: `kubernetes.io/service-name=${name}` });
      const all = slices.flatMap(({ endpoints }) => endpoints.flatMap((endpoint) => endpoint.addresses));
      return addresses.every((address) => all.includes(address));
    },
    patience,
  );
  return addresses;
});

test('a Service of the consumer leads to its pods at the provider: by ClusterIP and by NodePort', async () => {
  expect(await abroad()).toHaveLength(2);
  const found = await stage.api('rome').get(services, { namespace, name: service });
  const { clusterIP = '', ports = [] } = found?.spec ?? {};
  const nodePort = ports[0]?.nodePort;
  for (const from of [...podPlaces.rome, ...nodePlaces.rome])
    await getsAnswer(from.netns, `http://${clusterIP}/remote`);
  for (const { ip } of nodePlaces.rome) {
    const curl = ['-sS', '-m', '5', `http://${ip}:${nodePort}/remote`];
    const answers = async () => /^\d/.test((await must('curl', curl)).stdout);
    await eventually(`node port ${ip}:${nodePort}`, answers, pass);
  }
});

/** Right after the EndpointSlice, kube-proxy may not have it yet. */
async function getsAnswer({ name, pid }: Netns, url: string): Promise<void> {
  await eventually(
    `${name} gets ${url}`,
    async () => (await must('nsenter', ['-t', String(pid), '-n', 'curl', '-sS', '-m', '3', url])).stdout !== '',
    pass,
  );
}

test(
  'a neighbour without credentials finds open what is for it, on nodes, pods and Services, and is told no more than that they are well',
  async () => {
    await abroad();
    const gateway = podPlace(netnsWorld, await eventually('an active gateway', () => activeGateway('rome'), pass));
    const ground = { stage, clusters: netnsWorld, nodes: nodePlaces, pods: podPlaces, gateway, view, served: port };
    const { strays, missing, told, answered } = await visit(ground);
    expect({ strays, missing }).toEqual({ strays: [], missing: [] });
    // Of the agent, asked from a pod beside it and from a peer: as the consumer, and as the provider.
    expect(told).toEqual(Array.from({ length: 3 }, () => ['8080', ['/healthz', '/readyz']]));
    expect(answered).toEqual([]);
  },
  walkMs,
);

test('`isthmus network test` finds every way open; of two hops that are cut it names each', async () => {
  await peered();
  const open = await networkTest(stage.world, clusterNames, '--node-port');
  expect(open.rows.filter(({ ok }) => !ok)).toEqual([]);
  expect([open.code, open.missing]).toEqual([0, []]);
  expect(new Set(open.rows.map(({ what }) => what))).toEqual(
    new Set(['pod-to-pod', 'pod-to-service', 'node-to-pod', 'pod-to-nodeport', 'outside-to-nodeport']),
  );
  const [ofMilan, hubGateway] = await Promise.all(
    (['milan', 'rome'] as const).map((cluster) => eventually('an active gateway', () => activeGateway(cluster), pass)),
  );
  const gateway = podPlace(netnsWorld, ofMilan!);
  const lonely = nodePlaces.rome.find(({ name }) => name !== hubGateway?.spec?.nodeName)!;
  const cut = (hook: string, port: number) =>
    `table ip cut {\nchain cut { type filter hook ${hook} priority -400; udp dport ${port} drop; }\n}\n`;
  await lonely.netns.nft(cut('output', networkPort.overlay));
  await gateway.netns.nft(cut('prerouting', networkPort.wireGuard));
  const torn = await networkTest(stage.world, clusterNames, '--basic').finally(async () => {
    for (const { netns } of [lonely, gateway]) await netns.nft('delete table ip cut\n');
  });
  expect(torn.code).toBe(7);
  const hops = torn.rows.map(({ from, failing }) => ({ from, hop: failing?.hop, at: failing?.at }));
  for (const { from, hop, at } of hops) {
    if (from.startsWith(`rome/${lonely.name}`))
      expect([hop, at]).toEqual(['source node to gateway', `rome/${lonely.name}`]);
    else expect([from, hop, at?.split(' - ').sort()]).toEqual([from, 'tunnel', ['milan', 'rome']]);
  }
  expect(new Set(hops.map(({ hop }) => hop)).size).toBe(2);
  await eventually(
    'the link is back',
    async () => (await connectionOf('rome'))?.status?.value === 'Connected',
    patience,
  );
}, 240_000);

test.each(clusterNames)(
  'the gateway pod of %s is killed under traffic: packets go on soon, and no transfer is lost',
  async (cluster) => {
    await peered();
    const [from, to] = [podPlaces.rome[0]!, podPlaces.milan[1]!];
    const agent = await from.netns.agent();
    const before = await eventually('an active gateway', () => activeGateway(cluster), pass);
    const ofTenant = { namespace: before.metadata.namespace ?? '' };
    const replicas = (await stage.api(cluster).list(pods, ofTenant)).map(({ metadata }) => metadata.name);
    const streaming = agent.ask('stream', { address: view(to.ip), port, everyMs: 10, forMs: 10_000 });
    const transfer = from.netns.transfer(view(to.ip), port, 240_000_000, 'down');
    let over = false;
    transfer.then(
      () => {
        over = true;
      },
      () => undefined,
    );
    const arrived = async () => ((await (await to.netns.agent()).ask('received', {})) as { bytes: number }).bytes;
    const already = await arrived();
    await eventually('both flow', async () => (await arrived()) > already + 20, pass);
    expect(over).toBe(false);
    await stage.api(cluster).delete(pods, { ...ofTenant, name: before.metadata.name });
    const { sent, answered, longestGapMs, answeredAfterGap } = (await streaming) as Streamed;
    const { seconds } = await transfer;
    console.log(
      `gateway of ${cluster} killed: ${Math.round(longestGapMs)} ms without an answer, ${answered} of ${sent} datagrams answered, transfer took ${seconds.toFixed(1)} s`,
    );
    const after = await eventually('another active gateway', () => activeGateway(cluster), pass);
    // One that ran already, not the pod that is made for the deleted one.
    expect(replicas.filter((name) => name !== before.metadata.name)).toContain(after.metadata.name);
    expect(answeredAfterGap).toBeGreaterThan(0);
  },
);

test.each([
  { what: 'our nft table', undo: ['nft', 'flush', 'table', 'ip', 'isthmus'] },
  { what: 'our policy rule', undo: ['ip', 'rule', 'del', 'priority', '101'] },
  { what: 'the overlay device', undo: ['ip', 'link', 'del', 'liqo-overlay'] },
])('$what is gone on a node: it is back at once', async ({ what, undo: [program = '', ...args] }) => {
  await peered();
  const node = nodePlaces.rome[0]!;
  const [before] = await settledKernels([node]);
  await node.netns.exec(program, ...args);
  const began = performance.now();
  // Sooner than the periodic resync of a node process.
  await eventually('repaired', () => isKernelState(node, before!), { withinMs: 15_000, everyMs: 50 });
  console.log(`${what}: repaired after ${Math.round(performance.now() - began)} ms`);
  expect(await seenFrom(podPlaces.rome[0]!, view(podPlaces.milan[0]!.ip))).toBe(view(podPlaces.rome[0]!.ip));
});

test('agents and node processes are killed: packets go on, and the kernels end as they were', async () => {
  await peered();
  const [from, to] = [podPlaces.rome[0]!, podPlaces.milan[0]!];
  const before = await settledKernels(allNodes(), gateways);
  // Longer than the start of all of them takes on a machine that is busy otherwise.
  const streaming = (await from.netns.agent()).ask('stream', {
    address: view(to.ip),
    port,
    everyMs: 10,
    forMs: 30_000,
  });
  const killed = ownProcesses();
  expect(killed.length).toBeGreaterThanOrEqual(6);
  for (const pid of killed) process.kill(pid, 'SIGKILL');
  const { longestGapMs, answeredAfterGap } = (await streaming) as Streamed;
  console.log(`${killed.length} processes killed: ${Math.round(longestGapMs)} ms without an answer`);
  expect(answeredAfterGap).toBeGreaterThan(0);
  await eventually('all run again', () => ownProcesses().length >= killed.length, patience);
  await eventually(
    'the link is Connected',
    async () => (await connectionOf('rome'))?.status?.value === 'Connected',
    patience,
  );
  // The Connection may be what an earlier life wrote: what counts is where the new ones end, and that they stay there.
  const isAsBefore = async () => {
    const now = await gateways();
    await Promise.all(allNodes().map((node, index) => isKernelState(node, before[index]!, now)));
    return true;
  };
  await eventually('the kernels are as they were', isAsBefore, patience);
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  await isAsBefore();
}, 300_000);

/** A killed node process may lose its gateway's turn to the other one: which of the two is active is told apart from what nodes have. */
async function gateways(): Promise<Words> {
  const active = await Promise.all(
    clusterNames.map(async (cluster) => {
      const gateway = await eventually('an active gateway', () => activeGateway(cluster), patience);
      return [gateway.status?.podIP ?? '', 'an active gateway'] as const;
    }),
  );
  return new Map([...active, ...(await answeredByLeaders())]);
}

async function answeredByLeaders(): Promise<Words> {
  const ips = await Promise.all(clusterNames.map((cluster) => stage.api(cluster).list(networkKinds.ips)));
  const served = ips.flat().filter(({ metadata }) => metadata.annotations?.[networkAnnotation.servedBy] !== undefined);
  return new Map(served.map(({ spec }) => [spec.ip, 'answered by the leader']));
}

/** Of controllers and node processes, in all nodes. */
const ownProcesses = (): number[] =>
  clusterNames.flatMap((cluster) => {
    const { agent, node } = stage.world.ownPids(cluster);
    return [...agent, ...node];
  });

test('unpeering leaves no device, rule, route, table, Secret or grant', async () => {
  await abroad();
  await stage.api('rome').delete(pods, { namespace, name: 'one' });
  await stage.api('rome').delete(pods, { namespace, name: 'two' });
  await stage.api('rome').delete(services, { namespace, name: service });
  await stage.world.mustIsthmus(
    'unoffload',
    'namespace',
    namespace,
    '--kubeconfig',
    stage.world.cluster('rome').kubeconfigPath,
  );
  await stage.world.mustIsthmus('unpeer', 'rome', 'milan', '--wait');
  for (const cluster of clusterNames) {
    await nothingLeft(cluster, stage.api(cluster), stage.baseline[cluster]);
  }
  for (const node of allNodes()) {
    await eventually(
      `${node.name} is as before the peering`,
      async () => isKernelState(node, unpeered.get(node.name) ?? '', await answeredByLeaders()),
      pass,
    );
  }
});
