/**
 * Memory of everything that is ours in a cluster of one node, on either side: joined and not peered, with one link, and with many offloaded
 * pods. Summed over controllers, node processes and what holds the tunnel, after things have settled.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '#test/harness/eventually.ts';
import { residentMiB } from '#test/harness/resident.ts';
import type { BenchOptions } from '../main.ts';
import { type BenchWorld, names, openBenchWorld } from '../peering/world.ts';
import { type BenchResult, thisMachine } from '../result.ts';

const namespace = 'bench';
const podCount = 100;
/** Memory is read so long after the last change, several times, and the highest reading counts. */
const settleMs = 20_000;
const readings = 5;

export async function run({ root, log }: BenchOptions): Promise<BenchResult> {
  const bench = await openBenchWorld(root, log);
  try {
    const phases: Record<string, number> = {};
    Object.assign(phases, await measure(bench, 'no link', log));
    await bench.ask('POST', '/v1/peerings?wait=25', {
      consumer: names.consumer,
      provider: names.provider,
      resources: { cpu: '2', memory: '8Gi', pods: String(podCount + 10) },
    });
    Object.assign(phases, await measure(bench, '0 pods', log));
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

async function startPods({ world }: BenchWorld, log: (line: string) => void): Promise<void> {
  const cluster = world.cluster(names.consumer);
  await cluster.kubectl('create', 'namespace', namespace);
  await world.mustIsthmus(
    'offload',
    'namespace',
    namespace,
    '--kubeconfig',
    cluster.kubeconfigPath,
    '--pod-offloading-strategy',
    'Remote',
  );
  const image = ['--image=isthmus.test/workload:1', `--replicas=${podCount}`, '--', 'sleep'];
  await cluster.kubectl('-n', namespace, 'create', 'deployment', 'many', ...image);
  const started = performance.now();
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
  { world }: BenchWorld,
  when: string,
  log: (line: string) => void,
): Promise<Record<string, number>> {
  await delay(settleMs);
  const highest = { consumer: 0, provider: 0 };
  const shares = { consumer: '', provider: '' };
  for (let i = 0; i < readings; i += 1) {
    for (const side of ['consumer', 'provider'] as const) {
      const parts = Object.entries(world.ownPids(names[side])).map(([what, pids]) => ({
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

function cpuSeconds({ world }: BenchWorld): number {
  const ticks = (pid: number) => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
  };
  const pids = [names.consumer, names.provider].flatMap((name) => Object.values(world.ownPids(name)).flat());
  return pids.reduce((total, pid) => total + ticks(pid), 0) / 100;
}
