/**
 * A provider is cut off for so long, with every delay of Kubernetes as it is by default, and comes back: what was deleted and when, what ran
 * twice, and how soon a thousand objects that changed meanwhile are equal again.
 */
import { readFile } from 'node:fs/promises';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Caches } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import { nodes, pods } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type ClusterName, clusterNames, consumer, provider, type Stage } from '../whole-clusters/stage.ts';
import { cutOff, giveBack } from './partition.ts';
import { between, moment } from './processor.ts';
import { type Copies, Goods } from './reflected-objects.ts';
import { type Deletion, Witness } from './witness.ts';
import { brief, onlyOnce, startWorkloads, whenWell } from './workloads.ts';

/** Of Kubernetes: `--node-monitor-grace-period`, the age that a Lease may have when silence begins, and what every pod tolerates. */
const graceSeconds = 50;
const leaseSeconds = 10;
const toleratedSeconds = 300;
/** It evicts from one node every ten seconds. */
const evictionSeconds = 120;
/** In a cut of so long the agent of the consumer dies once. */
const longCutSeconds = 120;
/** Before the end of the cut the second half of the changes is made. */
const lastChangesMs = 8_000;
const settleMs = 2_000;

export interface CutOptions {
  readonly seconds: number;
  /** Of the consumer; it is made. */
  readonly namespace: string;
  readonly say?: (line: string) => void;
}

export interface Report {
  /** Violated expectations; empty when all held. */
  readonly problems: readonly string[];
  readonly changes: number;
  /** Seconds after the end of the cut. */
  readonly equalAfter: { readonly first: number; readonly half: number; readonly most: number; readonly all: number };
  /** What the machine did until they were. */
  readonly load: string;
  readonly nodeReadyAfter: number;
  readonly endpointsReadyAfter: number;
  readonly podsWellAfter: number;
  /** Seconds; more than was asked for where the machine was too busy to make the changes in time. */
  readonly lasted: number;
  /** Seconds after the beginning of the cut; undefined: none was. */
  readonly firstEvictionAt: number | undefined;
}

export function wordsOf(seconds: number, report: Report): string {
  const { changes, equalAfter, load, nodeReadyAfter, endpointsReadyAfter, podsWellAfter, lasted, firstEvictionAt } =
    report;
  const { first, half, most, all } = equalAfter;
  return [
    `cut of ${seconds} s (lasted ${lasted} s): ${changes} objects that changed meanwhile are equal ${all} s after it`,
    `(the first ${first} s, half of them ${half} s, 95 % ${most} s; ${load});`,
    `Node Ready after ${nodeReadyAfter} s, endpoints after ${endpointsReadyAfter} s, all pods after ${podsWellAfter} s;`,
    firstEvictionAt === undefined ? 'no pod was evicted' : `first eviction ${firstEvictionAt} s after its beginning`,
  ].join(' ');
}

interface Sight {
  readonly here: ReadonlyMap<string, Pod>;
  readonly there: ReadonlyMap<string, Pod>;
}

/** A cut from its beginning to its end, with all its observers. */
interface Play {
  readonly on: Stage;
  readonly options: CutOptions;
  readonly remoteNamespace: string;
  readonly goods: Goods;
  readonly copies: Copies;
  readonly witness: Witness;
  /** Says what was not as it must be. */
  readonly none: (what: string, found: readonly string[]) => void;
}

const toSeconds = (ms: number): number => Math.round(ms / 100) / 10;

/** Expects a peering of both clusters, and leaves the namespace behind. */
export async function runCut(on: Stage, options: CutOptions): Promise<Report> {
  const stop = new AbortController();
  sharedByMany(stop.signal);
  const problems: string[] = [];
  try {
    const play = await begin(on, options, problems, stop.signal);
    await startWorkloads(on, options.namespace);
    const before = await settled(play);
    const { cutAt, evictions } = await during(play, before);
    const loadBefore = moment(on);
    await giveBack(on.world);
    const backAt = Date.now();
    const lasted = toSeconds(backAt - cutAt);
    const [nodeReadyAfter] = await Promise.all([
      secondsUntil(backAt, 'the virtual Node is Ready', () => isNodeReady(on)),
      equal(play.copies, 'after'),
    ]);
    const [first, half, most, all] = play.copies.equalAfter(backAt).map(toSeconds) as [number, number, number, number];
    const load = between(loadBefore, moment(on));
    options.say?.(`equal ${all} s after the cut`);
    const endpointsReadyAfter = await secondsUntil(backAt, 'the endpoints are ready', () => play.copies.allReady);
    await whenWell(on, options.namespace);
    const podsWellAfter = toSeconds(Date.now() - backAt);
    await validateEnd(play, before, evictions);
    const firstEvictionAt =
      evictions.length === 0 ? undefined : toSeconds(Math.min(...evictions.map(({ at }) => at)) - cutAt);
    return {
      ...{ problems, changes: play.goods.count, equalAfter: { first, half, most, all }, load },
      ...{ nodeReadyAfter, endpointsReadyAfter, podsWellAfter, lasted, firstEvictionAt },
    };
  } finally {
    stop.abort();
    await giveBack(on.world);
  }
}

async function begin(on: Stage, options: CutOptions, problems: string[], signal: AbortSignal): Promise<Play> {
  const { namespace } = options;
  const remoteNamespace = `${namespace}-${consumer}`;
  const [here, there] = await Promise.all([cachesOf(on, consumer, signal), cachesOf(on, provider, signal)]);
  await on.createNamespace(namespace);
  await on.mustOffload(namespace, '--strategy', 'LocalAndRemote');
  const home = on.world.cluster(consumer);
  const homeNode = home.nodes[0]?.name ?? '';
  const goods = new Goods(on.api(consumer), { namespace, physicalNode: homeNode, podCidr: home.podCidr });
  const copies = await goods.follow(there, remoteNamespace, signal);
  const witness = new Witness();
  const runsHome = ({ spec }: Pod): boolean => spec?.nodeName === homeNode;
  await witness.watch({ cluster: consumer, namespace, caches: here, runsHere: runsHome }, signal);
  await witness.watch({ cluster: provider, namespace: remoteNamespace, caches: there, runsHere: () => true }, signal);
  await goods.make();
  await equal(copies, 'before');
  const none: Play['none'] = (what, found) => {
    const more = found.length > 5 ? `, and ${found.length - 5} more` : '';
    if (found.length > 0) problems.push(`${what}: ${found.slice(0, 5).join(', ')}${more}`);
  };
  return { on, options, remoteNamespace, goods, copies, witness, none };
}

/** Ends a moment before the cut does. */
async function during(play: Play, before: Sight): Promise<{ cutAt: number; evictions: readonly Deletion[] }> {
  const { on, goods, copies, witness, none } = play;
  const { seconds, say } = play.options;
  const earlier = witness.deletions.length;
  say?.(`cut off for ${seconds} s`);
  await cutOff(on.world, clusterNames);
  const cutAt = Date.now();
  const sleepUntil = (ms: number): Promise<void> => systemClock.sleep(Math.max(0, cutAt + ms - Date.now()));
  await goods.change(0, 0.5);
  if (seconds >= longCutSeconds) {
    await sleepUntil(seconds * 500);
    say?.('killing the agent of the consumer, which has to restart without the provider');
    for (const pid of on.world.agentPids(consumer)) process.kill(pid, 'SIGKILL');
  }
  await sleepUntil(seconds * 1_000 - lastChangesMs);
  await goods.change(0.5, 1);
  await sleepUntil(seconds * 1_000);

  none('copies that changed during the cut', copies.differing('before'));
  // The changes of the test itself delete ConfigMaps of the consumer.
  const own = new RegExp(`^${consumer} ConfigMap good-`);
  const deletions = witness.deletions.slice(earlier).filter(({ what }) => !own.test(what));
  const evictions = deletions.filter(({ what }) => what.startsWith(`${consumer} Pod `));
  // Kubernetes writes whole seconds.
  const earliest = cutAt + (graceSeconds - leaseSeconds + toleratedSeconds - 1) * 1_000;
  none(
    'deleted before its time',
    deletions
      .filter((one) => !evictions.includes(one) || one.at < earliest)
      .map(({ what, at }) => `${what} after ${toSeconds(at - cutAt)} s`),
  );
  if (seconds > graceSeconds + toleratedSeconds + evictionSeconds && evictions.length === 0)
    none('for want of evictions', ['Kubernetes evicted no pod, however long the node was silent']);
  const now = await look(play);
  if (Date.now() - cutAt < (graceSeconds - leaseSeconds) * 1_000)
    none('pods that changed at home in a short cut', changed(before, now));
  none(
    'members of the StatefulSet that were replaced before anybody knew their end',
    ['db-0', 'db-1'].filter((name) => uidOf(now.here, name) !== uidOf(before.here, name)),
  );
  return { cutAt, evictions };
}

async function validateEnd(play: Play, before: Sight, evictions: readonly Deletion[]): Promise<void> {
  const { on, witness, none } = play;
  const after = await look(play);
  const evicted = new Set(evictions.map(({ what }) => what));
  const survivors = [...before.here.keys()].filter((name) => !evicted.has(`${consumer} Pod ${name}`));
  const others = (side: keyof Sight): string[] =>
    survivors.filter((name) => uidOf(after[side], name) !== uidOf(before[side], name));
  none('pods without an eviction that did not last', others('here'));
  none('pods without an eviction that were made again', others('there'));
  const restarted = ({ status }: Pod): boolean =>
    status?.containerStatuses?.some(({ restartCount }) => restartCount > 0) ?? false;
  none(
    'pods that were restarted',
    [...after.here].filter(([, pod]) => restarted(pod)).map(([name]) => name),
  );
  none('pods that ran twice', witness.doubles());
  none(
    'what never ran',
    [...onlyOnce, brief].filter((one) => witness.ran(one) === 0),
  );
  if (witness.ran(brief) !== 1) none('the Job that ended during the cut', [`ran ${witness.ran(brief)} times`]);
  // The broker hears a moment later what the clusters found out.
  await eventually('Ready', async () => (await on.peering())?.phase === 'Ready', { withinMs: 60_000 }).catch(async () =>
    none('the peering a minute after the cut', [(await on.peering())?.phase ?? 'gone']),
  );
}

const uidOf = (all: ReadonlyMap<string, Pod>, name: string): string | undefined => all.get(name)?.metadata.uid;

function changed(before: Sight, now: Sight): string[] {
  return [...before.here].flatMap(([name, pod]) => {
    const after = now.here.get(name);
    if (after === undefined) return [`${name} is gone`];
    return (['metadata', 'status'] as const).flatMap((part) =>
      differing(pod[part] ?? {}, after[part] ?? {}).map((output) => `${name}: ${part}.${output}`),
    );
  });
}

function differing(before: object, after: object): string[] {
  const [was, is] = [new Map(Object.entries(before)), new Map(Object.entries(after))];
  return [...new Set([...was.keys(), ...is.keys()])]
    .map((key) => ({ key, told: [was, is].map((side) => JSON.stringify(side.get(key)) ?? 'nothing') }))
    .filter(({ told: [one, other] }) => one !== other)
    .map(({ key, told: reported }) => `${key}: ${reported.join(' became ')}`);
}

async function look({ on, options, remoteNamespace }: Play): Promise<Sight> {
  const named = async (cluster: ClusterName, namespace: string): Promise<ReadonlyMap<string, Pod>> =>
    new Map((await on.api(cluster).list(pods, { namespace })).map((pod) => [pod.metadata.name, pod]));
  const [here, there] = await Promise.all([named(consumer, options.namespace), named(provider, remoteNamespace)]);
  return { here, there };
}

/** Once two looks, two seconds apart, saw the same: what a kubelet adds after a pod is ready has come home, too. */
async function settled(play: Play): Promise<Sight> {
  let last = await look(play);
  return eventually(
    'the pods at home rest',
    async () => {
      await systemClock.sleep(settleMs);
      const now = await look(play);
      const output = changed(last, now);
      last = now;
      if (output.length > 0) throw new Error(output.join(', '));
      return now;
    },
    { withinMs: 30_000, everyMs: 0 },
  );
}

async function cachesOf(on: Stage, cluster: ClusterName, signal: AbortSignal): Promise<Caches> {
  const connection = await connectKubeconfig(await readFile(on.world.cluster(cluster).kubeconfigPath, 'utf8'));
  signal.addEventListener('abort', () => connection.close(), { once: true });
  return openCluster(connection, { clock: systemClock, log: silentLog }, signal).caches;
}

const equal = (copies: Copies, when: 'before' | 'after'): Promise<true> =>
  eventually(
    'all copies are equal',
    () => {
      const differing = copies.differing(when);
      if (differing.length === 0) return true as const;
      throw new Error(`${differing.length} differ, such as ${differing.slice(0, 3).join(', ')}`);
    },
    { withinMs: 120_000, everyMs: 20 },
  );

async function secondsUntil(since: number, what: string, holds: () => boolean | Promise<boolean>): Promise<number> {
  await eventually(what, holds, { withinMs: 120_000, everyMs: 500 });
  return toSeconds(Date.now() - since);
}

async function isNodeReady(on: Stage): Promise<boolean> {
  const node = await on.api(consumer).get(nodes, { name: provider });
  const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
  return ready && !(node?.spec?.taints ?? []).some(({ key }) => key.startsWith('node.kubernetes.io/'));
}
