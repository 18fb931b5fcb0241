/**
 * Seconds from a claim and its pod to the pod Ready, offloaded and on a node of the cluster itself, by turns; then how much memory of the agents 1,000
 * claims at the provider take. Two real clusters with a CSI driver each.
 */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { selectedNode } from '#agent/storage/model/claims.ts';
import { persistentVolumeClaims, persistentVolumes, pods } from '#shared/domain/core-kinds.ts';
import { type KubeObject, refOf } from '#shared/domain/kube-object.ts';
import { storageAnnotation } from '#shared/domain/storage-keys.ts';
import { eventually } from '#test/harness/eventually.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { residentMiB } from '#test/harness/resident.ts';
import { claim, genuine, on, openStorageStage, shop, shopThere, writer } from '#test/system/storage/storage-stage.ts';
import {
  type ClusterName,
  clusterNames,
  consumer,
  isReady,
  provider,
  type Stage,
} from '#test/system/whole-clusters/stage.ts';
import { endOnInterrupt } from '../interrupt.ts';
import { type BenchOptions, type BenchResult, median, thisMachine } from '../result.ts';

const defaultRuns = 20;
/**
 * A kubelet looks once a second whether containers run. Runs that follow one another would all begin at the same moment of that second, so each waits for a
 * random part of it.
 */
const kubeletPeriodMs = 1_000;
const claimCount = 1_000;
/** The driver makes no volume below 16 MiB. */
const asked = { 'requests.storage': '40Gi', persistentvolumeclaims: String(claimCount + 10) };
/** Each namespace of a consumer has 20 claims unless a policy says otherwise. */
const withoutQuota = {
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'PeeringPolicy',
  metadata: { name: 'without-quota' },
  spec: { asProvider: { namespaceDefaults: { resourceQuota: { hard: {} } } } },
} as KubeObject;
/** Made at a time; an API server limits what one client has in flight. */
const batch = 50;
/** Memory is read so long after the last change, several times, and the lowest reading counts: an agent collects all garbage when it has been quiet for 30 s. */
const settleMs = 90_000;
const readings = 5;
const withinMs = 1_200_000;

type Memory = Readonly<Record<ClusterName, number>>;

export async function run({ root, log, runs = defaultRuns }: BenchOptions): Promise<BenchResult> {
  const place = { root, dir: path.join(root, '.build', 'bench-claims'), log };
  const started = endOnInterrupt(() => removeProductClusters(place), log);
  try {
    const stage = await openStorageStage({ ...place, brokerPort: 7793, cluster: { storageGiB: 32 }, resources: asked });
    await stage.apply(provider, withoutQuota);
    const nodes = { offloaded: provider, local: genuine };
    const seconds: Record<keyof typeof nodes, number[]> = { offloaded: [], local: [] };
    // The first pair is not counted: images are unpacked, and code is loaded.
    for (let i = 0; i <= runs; i += 1) {
      for (const where of ['offloaded', 'local'] as const) {
        const took = await claimToReady(stage, `${where}-${i}`, nodes[where]);
        if (i > 0) seconds[where].push(took);
        log(`${where}, run ${i}: ${took.toFixed(2)} s${i === 0 ? ', not counted' : ''}`);
      }
    }
    await startAgain(stage);
    const before = await settled(stage, 'no claims', log);
    await makeClaims(stage, log);
    const after = await settled(stage, `${claimCount} claims, just made`, log);
    await startAgain(stage);
    const again = await settled(stage, `${claimCount} claims, agents started again`, log);
    const more = (what: string, memory: Memory) =>
      clusterNames.map((name) => {
        const side = name === consumer ? 'consumer' : 'provider';
        return [`agent of the ${side}, ${claimCount} claims, ${what}, MiB more`, memory[name] - before[name]] as const;
      });
    return {
      name: 'claims',
      unit: 's',
      value: median(seconds.offloaded),
      samples: seconds.offloaded,
      phases: {
        'on a node of the cluster itself': median(seconds.local),
        'more than there': median(seconds.offloaded) - median(seconds.local),
        ...Object.fromEntries([...more('just made', after), ...more('started again', again)]),
      },
      raw: { seconds, before, after, again },
      machine: thisMachine(root),
    };
  } finally {
    await started.close();
  }
}

/** Made in one go, as `kubectl apply` of both; all of it is gone before it resolves. */
async function claimToReady(stage: Stage, name: string, node: string): Promise<number> {
  const api = stage.api(consumer);
  const [volume, pod] = [claim(name), writer(name, name, 'a line', on(node))];
  await delay(Math.random() * kubeletPeriodMs);
  const at = performance.now();
  const made = await api.create(persistentVolumeClaims, volume as never);
  await api.create(pods, pod as never);
  await eventually(
    `pod ${name} to be ready`,
    async () => {
      const now = await api.get(pods, refOf(pod));
      return now !== undefined && isReady(now);
    },
    { withinMs: 180_000, everyMs: 25 },
  );
  const seconds = (performance.now() - at) / 1_000;
  await api.delete(pods, refOf(pod));
  await eventually(`pod ${name} to be gone`, async () => (await api.get(pods, refOf(pod))) === undefined);
  await api.delete(persistentVolumeClaims, refOf(volume));
  await eventually(`the volumes of ${name} to be gone`, async () => {
    const claims = await stage.api(provider).list(persistentVolumeClaims, { namespace: shopThere });
    const lists = await Promise.all(clusterNames.map((cluster) => stage.api(cluster).list(persistentVolumes)));
    const uid = made.metadata.uid ?? '';
    // The real claim of a volume of the cluster itself has the UID of the claim as its name.
    const isOfIt = (one?: string): boolean => one === name || one === uid;
    return (
      lists.flat().every(({ spec }) => !isOfIt(spec?.claimRef?.name)) &&
      claims.every(({ metadata }) => !isOfIt(metadata.name))
    );
  });
  return seconds;
}

/** Bound at the provider, each with a volume on either side; no pod uses them. */
async function makeClaims(stage: Stage, log: (line: string) => void): Promise<void> {
  const api = stage.api(consumer);
  const at = performance.now();
  const annotations = {
    [selectedNode]: provider,
    [storageAnnotation.remoteStorageClass]: 'loop-now',
  };
  const spec = { resources: { requests: { storage: '1Mi' } } };
  for (let first = 0; first < claimCount; first += batch)
    await Promise.all(
      Array.from({ length: batch }, (_, i) =>
        api.create(persistentVolumeClaims, claim(`many-${first + i}`, annotations, spec) as never),
      ),
    );
  const bound = async (cluster: ClusterName, namespace: string): Promise<number> =>
    (await stage.api(cluster).list(persistentVolumeClaims, { namespace })).filter(
      ({ metadata, status }) => metadata.name.startsWith('many-') && status?.phase === 'Bound',
    ).length;
  await eventually(
    `${claimCount} claims to be bound on both sides`,
    async () => {
      const counts = [await bound(consumer, shop), await bound(provider, shopThere)];
      if (counts.some((one) => one !== claimCount)) throw new Error(`${counts.join(' and ')} are`);
      return true;
    },
    { withinMs, everyMs: 5_000 },
  );
  log(`${claimCount} claims bound on both sides after ${((performance.now() - at) / 1_000).toFixed(0)} s`);
}

/** What an agent has taken for the claims of earlier runs is not given back to the kernel: one that has just started has none of that. */
async function startAgain({ world }: Stage): Promise<void> {
  const before = clusterNames.flatMap((name) => world.agentPids(name));
  for (const pid of before) process.kill(pid, 'SIGTERM');
  await eventually(
    'the agents to run again',
    () =>
      clusterNames.every((name) => {
        const now = world.agentPids(name);
        return now.length > 0 && now.every((pid) => !before.includes(pid));
      }),
    { withinMs: 120_000, everyMs: 500 },
  );
}

async function settled({ world }: Stage, when: string, log: (line: string) => void): Promise<Memory> {
  await delay(settleMs);
  const lowest = { rome: Number.POSITIVE_INFINITY, milan: Number.POSITIVE_INFINITY };
  for (let i = 0; i < readings; i += 1) {
    for (const name of clusterNames) lowest[name] = Math.min(lowest[name], residentMiB(world.agentPids(name)));
    await delay(5_000);
  }
  log(
    `${when}: agent of the consumer ${lowest[consumer].toFixed(1)} MiB, of the provider ${lowest[provider].toFixed(1)}`,
  );
  return lowest;
}
