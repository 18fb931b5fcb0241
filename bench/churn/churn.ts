/** Pods that come and go: so many a second are made, each is deleted a while after. Without growth, the last minute is as quick as the first. */
import { setTimeout as delay } from 'node:timers/promises';
import { pods as podKind } from '#shared/domain/core-kinds.ts';
import type { BenchOptions } from '../main.ts';
import { type BenchResult, median, thisMachine } from '../result.ts';
import { cpuBetween, read, sides, total } from '../scale/usage.ts';
import { burst, clear, offloaded, openScaleWorld, podSpec, type ScaleWorld } from '../scale/world.ts';

const perSecond = 20;
const lifeMs = 20_000;
/** The last pods get so long to become Ready and to go. */
const tailMs = 60_000;

interface Life {
  readonly madeAt: number;
  readyAt?: number;
  deletedAt?: number;
  goneAt?: number;
}

export async function run({ root, seconds = 300, log }: BenchOptions): Promise<BenchResult> {
  const most = (perSecond * lifeMs) / 1_000;
  const world = await openScaleWorld(root, 5 * most, log);
  try {
    await world.limitClients('lifted');
    await burst(world, offloaded, 20, 120_000);
    await clear(world, offloaded);
    const before = { consumer: read(world.world, 'consumer'), provider: read(world.world, 'provider') };
    const lives = await churn(world, seconds, log);
    const after = { consumer: read(world.world, 'consumer'), provider: read(world.world, 'provider') };
    const cpu = sides.map((side) => total(cpuBetween(before[side], after[side])));
    const waits = slices(lives, seconds, ({ madeAt, readyAt }) => readyAt && readyAt - madeAt);
    const ends = slices(lives, seconds, ({ deletedAt, goneAt }) => deletedAt && goneAt && goneAt - deletedAt);
    const growth = (waits.at(-1) ?? Number.NaN) / (waits[0] ?? Number.NaN);
    const phases: Record<string, number> = {
      'last minute / first minute': growth,
      'pods never Ready': lives.filter(({ readyAt }) => readyAt === undefined).length,
      'pods never gone': lives.filter(({ goneAt }) => goneAt === undefined).length,
      'CPU ms per pod that came and went, both sides': ((cpu[0] ?? 0) + (cpu[1] ?? 0)) * (1_000 / lives.length),
    };
    for (const [minute, value] of waits.entries()) phases[`median s until Ready, minute ${minute + 1}`] = value;
    for (const [minute, value] of ends.entries())
      phases[`median s from deletion to gone, minute ${minute + 1}`] = value;
    for (const side of sides) phases[`MiB after, ${side}`] = total(after[side].residentMiB);
    return {
      name: 'churn',
      unit: `s until Ready, in the last minute of ${seconds} s with ${perSecond} pods a second`,
      value: waits.at(-1) ?? Number.NaN,
      samples: waits,
      phases,
      raw: { before, after },
      machine: thisMachine(root),
    };
  } finally {
    await world.close();
  }
}

async function churn({ consumer }: ScaleWorld, seconds: number, log: (line: string) => void): Promise<Life[]> {
  const { api, caches } = consumer;
  const lives = new Map<string, Life>();
  const stop = new AbortController();
  const known = caches.scoped(podKind, { namespace: offloaded }, stop.signal);
  known.subscribe(({ before, after }) => {
    const life = lives.get((after ?? before)?.metadata.name ?? '');
    if (!life) return;
    const isReady = after?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    if (isReady) life.readyAt ??= performance.now();
    if (!after) life.goneAt ??= performance.now();
  });
  await known.synced();
  const failures: unknown[] = [];
  const note = (error: unknown): void => void failures.push(error);
  const begun = performance.now();
  const count = seconds * perSecond;
  const dying: { readonly name: string; readonly at: number }[] = [];
  for (let i = 0; i < count; i++) {
    const at = begun + (i * 1_000) / perSecond;
    if (at > performance.now()) await delay(at - performance.now());
    const name = `pod-${i}`;
    lives.set(name, { madeAt: performance.now() });
    api
      .create(podKind, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { namespace: offloaded, name, labels: { app: 'churn' } },
        spec: podSpec(offloaded),
      })
      .catch(note);
    dying.push({ name, at: at + lifeMs });
    while (dying[0] !== undefined && dying[0].at <= performance.now()) end(dying.shift()?.name ?? '');
    if (i % (perSecond * 30) === 0) log(`${i} of ${count} pods made, ${known.list().length} there`);
  }
  for (const { name, at } of dying) {
    if (at > performance.now()) await delay(at - performance.now());
    end(name);
  }
  const deadline = performance.now() + tailMs;
  while (known.list().length > 0 && performance.now() < deadline) await delay(250);
  stop.abort();
  if (failures.length > 0)
    throw new Error(`${failures.length} requests of the bench failed, the first: ${failures[0]}`);
  return [...lives.values()];

  function end(name: string): void {
    const life = lives.get(name);
    if (life) life.deletedAt = performance.now();
    api.delete(podKind, { namespace: offloaded, name }).catch(note);
  }
}

/** Medians in seconds, by the minute in which the pods were made; a last part of less than half a minute counts to the one before. */
function slices(lives: readonly Life[], seconds: number, figure: (life: Life) => number | undefined): number[] {
  const minutes = Math.max(1, Math.round(seconds / 60));
  const first = lives[0]?.madeAt ?? 0;
  return Array.from({ length: minutes }, (_, minute) => {
    const of = lives.filter(({ madeAt }) => Math.min(minutes - 1, Math.floor((madeAt - first) / 60_000)) === minute);
    return median(of.flatMap((life) => figure(life) ?? [])) / 1_000;
  });
}
