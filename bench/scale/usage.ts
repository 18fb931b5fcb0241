/** What the processes of both sides take, and what the API servers are asked. */
import { readFileSync } from 'node:fs';
import type { KubeApi } from '#kube/model/types.ts';
import { processorSeconds } from '#test/harness/processor-seconds.ts';
import type { OwnPids, ProductClusters } from '#test/harness/product-clusters.ts';
import { names } from '../peering/peering-clusters.ts';

export type Side = keyof typeof names;
export const sides: readonly Side[] = ['consumer', 'provider'];
type Role = keyof OwnPids;

/** A reading of everything that is ours on one side. */
export interface Reading {
  readonly pids: readonly number[];
  /** CPU seconds since each process began, those of the tools included that it started and that have ended; summed by role. */
  readonly cpu: Readonly<Record<Role, number>>;
  /** Resident now, in MiB, summed by role. */
  readonly residentMiB: Readonly<Record<Role, number>>;
}

/** Seconds in user and kernel mode, of the process and of its children that have ended. */
export function cpuSeconds(pid: number): number {
  const { own, started } = processorSeconds(pid);
  return own + started;
}

const residentMiB = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

export function read(clusters: ProductClusters, side: Side): Reading {
  const pids = clusters.ownPids(names[side]);
  const each = (figure: (pid: number) => number) =>
    Object.fromEntries(Object.entries(pids).map(([role, own]) => [role, sum(own.map(figure))]));
  return {
    pids: Object.values(pids).flat().sort(),
    cpu: each(cpuSeconds) as Reading['cpu'],
    residentMiB: each(residentMiB) as Reading['residentMiB'],
  };
}

export const total = (parts: Readonly<Record<string, number>>): number => sum(Object.values(parts));

/** CPU seconds by role between two readings; throws when a process was replaced, for then the figure would say nothing. */
export function cpuBetween(before: Reading, after: Reading): Record<Role, number> {
  if (before.pids.join() !== after.pids.join())
    throw new Error(
      `processes were replaced during the measurement: ${before.pids.join()} became ${after.pids.join()}`,
    );
  const roles = Object.keys(after.cpu) as Role[];
  return Object.fromEntries(roles.map((role) => [role, after.cpu[role] - before.cpu[role]])) as Record<Role, number>;
}

/** Requests that an API server has answered, by `VERB resource[/subresource]`; watches are not counted. */
export type Requests = Readonly<Record<string, number>>;

export async function requests(api: KubeApi): Promise<Requests> {
  const counts: Record<string, number> = {};
  for (const line of (await api.getPath('/metrics')).split('\n')) {
    const [, labels, value] = /^apiserver_request_total\{(.*)\} (\S+)$/.exec(line) ?? [];
    if (labels === undefined) continue;
    const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
    const verb = label('verb');
    if (verb === 'WATCH') continue;
    const subresource = label('subresource');
    const key = `${verb} ${label('resource')}${subresource === '' ? '' : `/${subresource}`}`;
    counts[key] = (counts[key] ?? 0) + Number(value);
  }
  return counts;
}

/** Watch events that an API server has sent, by resource (or kind, as older ones say), all watchers together. */
export async function watchEvents(api: KubeApi): Promise<Requests> {
  const counts: Record<string, number> = {};
  for (const line of (await api.getPath('/metrics')).split('\n')) {
    const [, labels = '', value] = /^apiserver_watch_events_total\{(.*)\} (\S+)$/.exec(line) ?? [];
    const key = /(?:^|,)(?:resource|kind)="([^"]+)"/.exec(labels)?.[1];
    if (key !== undefined) counts[key] = (counts[key] ?? 0) + Number(value);
  }
  return counts;
}

/** Of the requests between two readings, those that are at least a twentieth of `per`, and their sum. */
export function requestsBetween(before: Requests, after: Requests, per: number): Record<string, number> {
  const deltas = Object.entries(after).map(([key, count]) => [key, (count - (before[key] ?? 0)) / per] as const);
  const often = deltas.filter(([, each]) => each >= 0.05).sort(([, a], [, b]) => b - a);
  return { all: sum(deltas.map(([, each]) => each)), ...Object.fromEntries(often) };
}
