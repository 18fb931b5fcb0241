/**
 * A Deployment of many pods, without offloading on the provider's hollow nodes and offloaded to them, once with Kubernetes' default client
 * limits and once with those lifted: seconds until all are Ready, and what our processes take for it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type BenchOptions, type BenchResult, thisMachine } from '../result.ts';
import { startProfiles } from '../scale/profile.ts';
import {
  alone,
  burst,
  type ClientLimits,
  clear,
  offloaded,
  openScaleClusters,
  type ScaleClusters,
} from '../scale/scale-clusters.ts';
import { cpuBetween, read, requests, requestsBetween, sides, total, watchEvents } from '../scale/usage.ts';

const warmUpPods = 20;
/** What is still under way when the last pod is Ready belongs to the burst. */
const afterMs = 5_000;

type Figures = Record<string, number>;

export async function run({ root, pods = 1_000, profile, log }: BenchOptions): Promise<BenchResult> {
  const clusters = await openScaleClusters(root, pods, log);
  try {
    const phases: Figures = {};
    const raw: Record<string, unknown> = {};
    for (const limits of ['default', 'lifted'] as const) {
      const measured = await once(clusters, {
        limits,
        pods,
        root,
        profile: profile === true && limits === 'lifted',
        log,
      });
      for (const [name, value] of Object.entries(measured.figures)) phases[`${limits} limits: ${name}`] = value;
      raw[limits] = measured.raw;
    }
    const value = phases['default limits: offloaded / alone'] ?? Number.NaN;
    return {
      name: 'burst',
      unit: `times the seconds of the same ${pods} pods without offloading, default client limits`,
      value,
      samples: [value],
      phases,
      raw,
      machine: thisMachine(root),
    };
  } finally {
    await clusters.close();
  }
}

interface Sample {
  readonly limits: ClientLimits;
  readonly pods: number;
  readonly root: string;
  readonly profile: boolean;
  readonly log: (line: string) => void;
}

async function once(clusters: ScaleClusters, { limits, pods, root, profile, log }: Sample) {
  await clusters.limitClients(limits);
  const withinMs = Math.max(120_000, pods * 200);
  for (const where of [alone, offloaded] as const) {
    await burst(clusters, where, warmUpPods, withinMs);
    await clear(clusters, where);
  }
  const aloneBefore = await counts(clusters);
  const without = await burst(clusters, alone, pods, withinMs);
  const aloneRequests = differences(aloneBefore, await counts(clusters), pods);
  await clear(clusters, alone);
  log(`${limits} limits: ${pods} pods alone in ${without.toFixed(1)} s`);
  await delay(afterMs);

  const before = { consumer: read(clusters.world, 'consumer'), provider: read(clusters.world, 'provider') };
  const countsBefore = await counts(clusters);
  const toldBefore = await told(clusters);
  const endProfiles = profile ? await startProfiles(root, clusters.world) : undefined;
  const withUs = await burst(clusters, offloaded, pods, withinMs);
  await delay(afterMs);
  for (const file of (await endProfiles?.()) ?? []) log(`profile: ${file}`);
  const after = { consumer: read(clusters.world, 'consumer'), provider: read(clusters.world, 'provider') };
  const requested = differences(countsBefore, await counts(clusters), pods);
  const watched = differences(toldBefore, await told(clusters), pods);
  const figures: Figures = { 's alone': without, 's offloaded': withUs, 'offloaded / alone': withUs / without };
  const cpu = {
    consumer: cpuBetween(before.consumer, after.consumer),
    provider: cpuBetween(before.provider, after.provider),
  };
  figures['CPU ms per pod, both sides'] = ((total(cpu.consumer) + total(cpu.provider)) * 1_000) / pods;
  for (const side of sides) {
    for (const [role, seconds] of Object.entries(cpu[side]))
      if (seconds > 0) figures[`CPU ms per pod, ${side}, ${role}`] = (seconds * 1_000) / pods;
  }
  for (const side of sides) figures[`MiB with ${pods} pods, ${side}`] = total(after[side].residentMiB);
  for (const side of sides) {
    figures[`API requests per pod, ${side}`] = requested[side].all ?? 0;
    figures[`watch events per pod, ${side}, to all watchers`] = watched[side].all ?? 0;
  }
  figures['API requests per pod alone'] = aloneRequests.provider.all ?? 0;
  figures['s until nothing is left'] = await clear(clusters, offloaded);
  log(
    `${limits} limits: ${pods} pods offloaded in ${withUs.toFixed(1)} s, ${(withUs / without).toFixed(3)} times; ${figures['CPU ms per pod, both sides'].toFixed(1)} ms of CPU per pod`,
  );
  return { figures, raw: { before, after, asked: requested, watched, aloneRequests } };
}

async function counts({ consumer, provider }: ScaleClusters) {
  return { consumer: await requests(consumer.api), provider: await requests(provider.api) };
}

async function told({ consumer, provider }: ScaleClusters) {
  return { consumer: await watchEvents(consumer.api), provider: await watchEvents(provider.api) };
}

type Counts = Awaited<ReturnType<typeof counts>>;
const differences = (before: Counts, after: Counts, per: number) => ({
  consumer: requestsBetween(before.consumer, after.consumer, per),
  provider: requestsBetween(before.provider, after.provider, per),
});
