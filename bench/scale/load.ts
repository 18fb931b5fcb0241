/** Where the machine's cores go while something is measured: by group of processes, of both clusters, of ours and of the bench itself. */
import { readFileSync } from 'node:fs';
import { ticksPerSecond } from '#test/harness/processor-seconds.ts';
import { names } from '../peering/peering-clusters.ts';
import type { ScaleClusters } from './scale-clusters.ts';
import { cpuSeconds, read, sides, total } from './usage.ts';

/** CPU seconds since boot or since each process began. */
export interface Load {
  readonly atMs: number;
  readonly byGroup: Readonly<Record<string, number>>;
  readonly machine: number;
}

const controlPlane = ['kube-apiserver', 'etcd', 'kube-controller-manager', 'kube-scheduler'] as const;

export function readLoad({ world: clusters, hollow }: ScaleClusters): Load {
  const byGroup: Record<string, number> = {};
  for (const side of sides) {
    const pids = clusters.cluster(names[side]).controlPlanePids();
    for (const component of controlPlane) byGroup[`${side}, ${component}`] = cpuSeconds(pids[component] ?? 0);
    byGroup[`${side}, ours`] = total(read(clusters, side).cpu);
  }
  byGroup['hollow nodes'] = cpuSeconds(hollow.pid);
  byGroup['this bench'] = cpuSeconds(process.pid);
  return { atMs: performance.now(), byGroup, machine: machineSeconds() };
}

/** Cores that each group kept busy between two readings, the machine as a whole, and what belongs to no group. */
export function coresBetween(before: Load, after: Load): Record<string, number> {
  const seconds = (after.atMs - before.atMs) / 1_000;
  const cores: Record<string, number> = {};
  for (const [group, cpu] of Object.entries(after.byGroup))
    cores[group] = (cpu - (before.byGroup[group] ?? 0)) / seconds;
  const machine = (after.machine - before.machine) / seconds;
  return { ...cores, 'everything else': machine - total(cores), 'the machine': machine };
}

/** All but what it idled, and what its host took away. */
function machineSeconds(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = (
    /^cpu +(.*)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? ''
  )
    .split(' ')
    .map(Number);
  return (user + nice + system + irq + softirq) / ticksPerSecond;
}
