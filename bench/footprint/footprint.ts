/**
 * Memory of everything that is ours in a cluster of one node, on either side: joined and not peered, with one link, and with many offloaded
 * pods. Summed over controllers, node processes, what holds the tunnel and tools that run on, after things have settled. And with one link,
 * processor time while nothing happens: of these, of the tools that they start for a moment, and how often API servers are asked.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '#test/harness/eventually.ts';
import { processorSeconds } from '#test/harness/processor-seconds.ts';
import { residentMiB } from '#test/harness/resident.ts';
import { type BenchClusters, names, openBenchClusters } from '../peering/peering-clusters.ts';
import { type BenchOptions, type BenchResult, thisMachine } from '../result.ts';
import { startProfiles } from '../scale/profile.ts';
import { requests, requestsBetween } from '../scale/usage.ts';

const namespace = 'bench';
const podCount = 100;
/** Memory is read so long after the last change, several times, and the highest reading counts. */
const settleMs = 20_000;
const readings = 5;
/** Unless told; some things happen once a minute. */
const idleSeconds = 120;

export async function run({ root, log, seconds = idleSeconds, profile = false }: BenchOptions): Promise<BenchResult> {
  const bench = await openBenchClusters(root, log);
  try {
    const phases: Record<string, number> = {};
    Object.assign(phases, await measure(bench, 'no link', log));
    await bench.ask('POST', '/v1/peerings?wait=25', {
      consumer: names.consumer,
      provider: names.provider,
      resources: { cpu: '2', memory: '8Gi', pods: String(podCount + 10) },
    });
    Object.assign(phases, await measure(bench, '0 pods', log));
    Object.assign(phases, await measureIdle(bench, seconds, log));
    if (profile) {
      const stop = await startProfiles(root, bench.world);
      await delay(seconds * 1_000);
      log(`profiles of idle agents: ${(await stop()).join(', ')}`);
    }
    const cpuBefore = cpuSeconds(bench);
    await startPods(bench, log);
    const cpu = cpuSeconds(bench) - cpuBefore;
    Object.assign(phases, await measure(bench, `${podCount} pods`, log));
    phases[`CPU ms per pod, both sides, over ${podCount} pods`] = (cpu * 1000) / podCount;
    const consumer = phases['consumer, 0 pods'] ?? Number.NaN;
    return { name: 'footprint', unit: 'MiB', value: consumer, samples: [consumer], phases, machine: thisMachine(root) };
  } finally {
    await bench.close();
  }
}

async function startPods({ world: clusters }: BenchClusters, log: (line: string) => void): Promise<void> {
  const cluster = clusters.cluster(names.consumer);
  await cluster.kubectl('create', 'namespace', namespace);
  await clusters.mustIsthmus(
    'offload',
    'namespace',
    namespace,
    '--kubeconfig',
    cluster.kubeconfigPath,
    '--pod-offloading-strategy',
    'Remote',
  );
  const image = ['--image=isthmus.test/workload:1', '--replicas=0', '--', 'sleep'];
  await cluster.kubectl('-n', namespace, 'create', 'deployment', 'many', ...image);
  // By the requests that a provider fills in, 80 of them would take the whole slice, and the node.
  const small = ['--requests=cpu=5m,memory=8Mi', '--limits=memory=32Mi'];
  await cluster.kubectl('-n', namespace, 'set', 'resources', 'deployment', 'many', ...small);
  const started = performance.now();
  await cluster.kubectl('-n', namespace, 'scale', 'deployment', 'many', `--replicas=${podCount}`);
  await eventually(
    `${podCount} pods are ready`,
    async () =>
      Number(
        await cluster.kubectl('-n', namespace, 'get', 'deployment', 'many', '-o', 'jsonpath={.status.readyReplicas}'),
      ) === podCount,
    { withinMs: 600_000, everyMs: 1_000 },
  );
  log(`${podCount} pods ready after ${((performance.now() - started) / 1000).toFixed(0)} s`);
}

async function measure(
  { world: clusters }: BenchClusters,
  when: string,
  log: (line: string) => void,
): Promise<Record<string, number>> {
  await delay(settleMs);
  const highest = { consumer: 0, provider: 0 };
  const shares = { consumer: '', provider: '' };
  for (let i = 0; i < readings; i += 1) {
    for (const side of ['consumer', 'provider'] as const) {
      const parts = Object.entries(clusters.ownPids(names[side])).map(([what, pids]) => ({
        what,
        mib: residentMiB(pids),
      }));
      const sum = parts.reduce((total, { mib }) => total + mib, 0);
      if (sum <= highest[side]) continue;
      highest[side] = sum;
      shares[side] = parts.map(({ what, mib }) => `${what} ${mib.toFixed(0)}`).join(', ');
    }
    await delay(1_000);
  }
  for (const side of ['consumer', 'provider'] as const)
    log(`${when}: ${side} ${highest[side].toFixed(0)} MiB (${shares[side]})`);
  return { [`consumer, ${when}`]: highest.consumer, [`provider, ${when}`]: highest.provider };
}

function cpuSeconds({ world: clusters }: BenchClusters): number {
  const pids = [names.consumer, names.provider].flatMap((name) => Object.values(clusters.ownPids(name)).flat());
  return pids.reduce((total, pid) => total + processorSeconds(pid).own, 0);
}

/** Seconds that all processors together have worked since the machine began. */
function machineSeconds(): number {
  const fields = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').split(/\s+/).slice(1).map(Number);
  const [idle = 0, waiting = 0] = fields.slice(3, 5);
  return (fields.slice(0, 8).reduce((total, ticks) => total + ticks, 0) - idle - waiting) / 100;
}

async function measureIdle(
  bench: BenchClusters,
  seconds: number,
  log: (line: string) => void,
): Promise<Record<string, number>> {
  const sides = ['consumer', 'provider'] as const;
  const take = async () => ({
    at: performance.now(),
    machine: machineSeconds(),
    cpu: sides.map((side) =>
      Object.entries(bench.world.ownPids(names[side])).flatMap(([role, pids]) =>
        pids.map((pid) => ({ role, pid, ...processorSeconds(pid) })),
      ),
    ),
    asked: await Promise.all(sides.map((side) => requests(bench[side].api))),
  });
  const before = await take();
  await delay(seconds * 1_000);
  const after = await take();
  const took = (after.at - before.at) / 1_000;
  log(
    `idle for ${took.toFixed(0)} s; the whole machine took ${((after.machine - before.machine) / took).toFixed(2)} cores`,
  );
  const figures: Record<string, number> = {};
  sides.forEach((side, which) => {
    let own = 0;
    let started = 0;
    for (const now of after.cpu[which] ?? []) {
      const was = before.cpu[which]?.find(({ pid }) => pid === now.pid) ?? { own: 0, started: 0 };
      const each = [now.own - was.own, now.started - was.started].map((value) => (value / took) * 1_000);
      log(`  ${side} ${now.role}: ${each[0]?.toFixed(1)} millicores, ${each[1]?.toFixed(1)} of what it started`);
      own += each[0] ?? 0;
      started += each[1] ?? 0;
    }
    figures[`${side}, idle, millicores`] = own + started;
    figures[`${side}, idle, millicores of what is started for a moment`] = started;
    const requested = requestsBetween(before.asked[which] ?? {}, after.asked[which] ?? {}, took / 60);
    log(`  ${side}'s API server is asked a minute, by everybody: ${JSON.stringify(requested)}`);
  });
  return figures;
}
