/**
 * Pods that come and go: so many a second are made, each is deleted a while after; first without offloading on the provider's hollow nodes,
 * then offloaded to them, in the same two clusters. Without growth, the last minute is as quick as the first.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type BenchOptions, type BenchResult, thisMachine } from '../result.ts';
import { coresBetween, readLoad } from '../scale/load.ts';
import {
  alone,
  burst,
  clear,
  offloaded,
  openScaleClusters,
  type ScaleClusters,
  type Where,
} from '../scale/scale-clusters.ts';
import { cpuBetween, read, requests, requestsBetween, sides, total } from '../scale/usage.ts';
import { byMinute, figuresOf, quantile, waitMs } from './figures.ts';
import { type ChurnOptions, churn, lifeMs } from './pod-churn.ts';

/** Without offloading: what does not grow within so long is not ours to find out. */
const aloneSeconds = 120;
/** Between the two, so that the one is not measured with the other's remains. */
const pauseMs = 5_000;

export async function run({ root, seconds = 300, perSecond = 20, log }: BenchOptions): Promise<BenchResult> {
  const most = (perSecond * lifeMs) / 1_000;
  const clusters = await openScaleClusters(root, 5 * most, log);
  try {
    await clusters.limitClients('lifted');
    for (const where of [alone, offloaded] as const) {
      await burst(clusters, where, 20, 120_000);
      await clear(clusters, where);
    }
    const phases: Record<string, number> = {};
    const raw: Record<string, unknown> = {};
    let samples: readonly number[] = [];
    for (const where of [alone, offloaded] as const) {
      await delay(pauseMs);
      const [name, lasting] = where === alone ? ['alone', Math.min(seconds, aloneSeconds)] : ['offloaded', seconds];
      const measured = await once(clusters, where, { seconds: lasting, perSecond, log });
      for (const [what, value] of Object.entries(measured.figures)) phases[`${name}: ${what}`] = value;
      raw[name] = measured.raw;
      samples = measured.medians;
    }
    return {
      name: 'churn',
      unit: `s until Ready, median of the last minute of ${seconds} s with ${perSecond} pods a second, offloaded`,
      value: samples.at(-1) ?? Number.NaN,
      samples,
      phases,
      raw,
      machine: thisMachine(root),
    };
  } finally {
    await clusters.close();
  }
}

async function once(clusters: ScaleClusters, where: Where, options: ChurnOptions) {
  const readings = () => ({ consumer: read(clusters.world, 'consumer'), provider: read(clusters.world, 'provider') });
  const requested = async () => ({
    consumer: await requests(clusters.consumer.api),
    provider: await requests(clusters.provider.api),
  });
  const [before, askedBefore, loadBefore] = [readings(), await requested(), readLoad(clusters)];
  const lifecycles = await churn(clusters, where, options);
  const [loadAfter, askedAfter, after] = [readLoad(clusters), await requested(), readings()];
  const figures: Record<string, number> = figuresOf(lifecycles, options.seconds);
  const cpu = sides.map((side) => total(cpuBetween(before[side], after[side])));
  figures['our CPU ms per pod that came and went, both sides'] =
    ((cpu[0] ?? 0) + (cpu[1] ?? 0)) * (1_000 / lifecycles.length);
  for (const [group, cores] of Object.entries(coresBetween(loadBefore, loadAfter))) figures[`cores, ${group}`] = cores;
  const perPod: Record<string, unknown> = {};
  for (const side of sides) {
    const of = requestsBetween(askedBefore[side], askedAfter[side], lifecycles.length);
    figures[`API requests per pod, ${side}`] = of.all ?? 0;
    figures[`MiB after, ${side}`] = total(after[side].residentMiB);
    perPod[side] = of;
  }
  const medians = byMinute(lifecycles, options.seconds).map((of) => quantile(of.map(waitMs), 0.5) / 1_000);
  options.log(`${where}: median s until Ready by minute ${medians.map((s) => s.toFixed(2)).join(', ')}`);
  return { figures, medians, raw: { before, after, requestsPerPod: perPod } };
}
