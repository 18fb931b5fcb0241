/** Figures of many lives: by minute, by stage, and how many were waiting at some moment. Pure. */
import type { PodLifecycle } from './pod-churn.ts';

type Figures = Record<string, number>;

/** A pod that waits for longer is in the queue. */
const patienceMs = 5_000;

type Moment = keyof PodLifecycle;
/** What a pod goes through, offloaded or not; stages that were not seen on both ends are left out. */
const stages: readonly (readonly [string, Moment, Moment])[] = [
  ['made to bound', 'madeAt', 'boundAt'],
  ['bound to ShadowPod', 'boundAt', 'shadowAt'],
  ['ShadowPod to remote pod', 'shadowAt', 'remoteAt'],
  ['remote pod to bound there', 'remoteAt', 'remoteBoundAt'],
  ['bound there to Ready there', 'remoteBoundAt', 'remoteReadyAt'],
  ['Ready there to Ready', 'remoteReadyAt', 'readyAt'],
  ['deleted to ShadowPod gone', 'deletedAt', 'shadowGoneAt'],
  ['ShadowPod gone to remote pod gone', 'shadowGoneAt', 'remoteGoneAt'],
  ['remote pod gone to gone', 'remoteGoneAt', 'goneAt'],
];

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** One that never became Ready has waited for its whole lifetime. */
export const waitMs = ({ madeAt, readyAt, goneAt, deletedAt }: PodLifecycle): number =>
  (readyAt ?? goneAt ?? deletedAt ?? madeAt) - madeAt;

const endMs = ({ deletedAt, goneAt }: PodLifecycle): readonly number[] =>
  deletedAt === undefined || goneAt === undefined ? [] : [goneAt - deletedAt];

/** By the minute in which the pods were made; a last part of less than half a minute counts to the one before. */
export function byMinute(lifecycles: readonly PodLifecycle[], seconds: number): readonly (readonly PodLifecycle[])[] {
  const minutes = Math.max(1, Math.round(seconds / 60));
  const first = lifecycles[0]?.madeAt ?? 0;
  return Array.from({ length: minutes }, (_, minute) =>
    lifecycles.filter(({ madeAt }) => Math.min(minutes - 1, Math.floor((madeAt - first) / 60_000)) === minute),
  );
}

export function figuresOf(lifecycles: readonly PodLifecycle[], seconds: number): Figures {
  const figures: Figures = {};
  const note = (what: string, values: readonly number[]): void => {
    if (values.length === 0) return;
    figures[`${what}, P50`] = quantile(values, 0.5) / 1_000;
    figures[`${what}, P99`] = quantile(values, 0.99) / 1_000;
  };
  for (const [minute, of] of byMinute(lifecycles, seconds).entries()) {
    note(`s until Ready, minute ${minute + 1}`, of.map(waitMs));
    note(`s from deletion to gone, minute ${minute + 1}`, of.flatMap(endMs));
    const end = of.at(-1)?.madeAt ?? 0;
    figures[`pods that waited more than 5 s at the end of minute ${minute + 1}`] = waitingAt(lifecycles, end);
    figures[`pods that should have been gone for 5 s at the end of minute ${minute + 1}`] = dyingAt(lifecycles, end);
  }
  figures['pods never Ready'] = lifecycles.filter(({ readyAt }) => readyAt === undefined).length;
  figures['pods never gone'] = lifecycles.filter(({ goneAt }) => goneAt === undefined).length;
  for (const [name, from, to] of stages) {
    const times = lifecycles.flatMap((lifecycle) => {
      const [begun, ended] = [lifecycle[from], lifecycle[to]];
      return begun === undefined || ended === undefined ? [] : [Math.max(0, ended - begun)];
    });
    note(`s from ${name}`, times);
  }
  return figures;
}

const isOver = (at: number | undefined, now: number): boolean => at !== undefined && at <= now;

const waitingAt = (lifecycles: readonly PodLifecycle[], now: number): number =>
  lifecycles.filter(
    ({ madeAt, readyAt, goneAt }) => madeAt < now - patienceMs && !isOver(readyAt, now) && !isOver(goneAt, now),
  ).length;

const dyingAt = (lifecycles: readonly PodLifecycle[], now: number): number =>
  lifecycles.filter(({ deletedAt, goneAt }) => isOver(deletedAt, now - patienceMs) && !isOver(goneAt, now)).length;
