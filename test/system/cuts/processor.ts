/** What this machine's processors did between two moments: how busy all of them were, and what two clusters took of that. */
import { readFileSync } from 'node:fs';
import os from 'node:os';
import { processorSeconds } from '#test/harness/processor-seconds.ts';
import { clusterNames, type Stage } from '../whole-clusters/stage.ts';

export interface Moment {
  readonly at: number;
  /** In ticks, of all processors together. */
  readonly busy: number;
  readonly all: number;
  /** CPU seconds since each process began. */
  readonly seconds: ReadonlyMap<string, ReadonlyMap<number, number>>;
}

function cpuSeconds(pid: number): number {
  try {
    return processorSeconds(pid).own;
  } catch {
    return 0; // it ended while we looked
  }
}

export function moment({ world: clusters }: Stage): Moment {
  const [, ...ticks] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').split(/\s+/).map(Number);
  const all = ticks.slice(0, 8).reduce((sum, one) => sum + one, 0);
  const seconds = new Map<string, Map<number, number>>();
  const note = (role: string, pids: readonly number[]): void => {
    const of = seconds.get(role) ?? new Map<number, number>();
    for (const pid of pids) of.set(pid, cpuSeconds(pid));
    seconds.set(role, of);
  };
  for (const name of clusterNames) {
    note(`agent of ${name}`, clusters.ownPids(name).agent);
    const plane = clusters.cluster(name).controlPlanePids();
    for (const role of ['kube-apiserver', 'etcd', 'kube-controller-manager'] as const) {
      const pid = plane[role];
      if (pid !== undefined) note(role, [pid]);
    }
  }
  return { at: Date.now(), all, busy: all - (ticks[3] ?? 0) - (ticks[4] ?? 0), seconds };
}

/** `75 % of 2 processors busy, 8.1 s of processor time: kube-apiserver 4.0, …`. */
export function between(before: Moment, after: Moment): string {
  const took = [...after.seconds].map(([role, pids]) => {
    const own = [...pids].map(([pid, seconds]) => seconds - (before.seconds.get(role)?.get(pid) ?? 0));
    return [role, own.reduce((sum, one) => sum + one, 0)] as const;
  });
  const sum = took.reduce((all, [, seconds]) => all + seconds, 0);
  const busy = (after.busy - before.busy) / Math.max(1, after.all - before.all);
  const each = took.map(([role, seconds]) => `${role} ${seconds.toFixed(1)}`).join(', ');
  return `${os.cpus().length} processors ${Math.round(busy * 100)} % busy, of which these clusters took ${sum.toFixed(1)} s: ${each}`;
}
