/** A peering made and ended again and again, each time in ways drawn by a seed, and both clusters compared with what they were at first. */
import { readFileSync } from 'node:fs';
import { nodes } from '#shared/domain/core-kinds.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { Ground } from '../brokerless/ground.ts';
import { shuffled } from '../declarative/orders.ts';
import { clusterNames, consumer } from '../whole-clusters/stage.ts';
import { linkedAs, linkedAtRest } from './linked.ts';
import { enders, type Maker, makers, tidyUp, type Way } from './peering-methods.ts';
import { kernelTraces, namespacesOf, objectTraces, type Traces, traceDifferences, waitUntilStable } from './traces.ts';

export interface Round {
  readonly number: number;
  readonly made: string;
  readonly ended: string;
  /** From the first request to node Ready, both ends connected, and pods that call each other. */
  readonly readyMs: number;
  /** From the first request to everything as before round 1. */
  readonly goneMs: number;
  /** Of all our processes of both clusters after it. */
  readonly rssMib: number;
}

export interface RoundsOptions {
  readonly rounds: number;
  readonly seed: number;
  /** All unless told. */
  readonly makers?: readonly Maker[];
  readonly onRound?: (round: Round) => void;
}

/** Kubernetes empties a namespace, looks again after 5 s at the earliest, and backs off from there. */
const unhurried = { withinMs: 120_000, everyMs: 250 } as const;

interface Pairing {
  readonly make: Way;
  readonly end: Way;
}

/** The ways to make it take turns; each is ended in all its ways before one comes again. Both in an order drawn by the seed. */
export function pairings({ rounds, seed, makers: only }: RoundsOptions): Pairing[] {
  const turns = shuffled(only ?? (Object.keys(makers) as Maker[]), seed);
  return Array.from({ length: rounds }, (_, index) => {
    const maker = turns[index % turns.length] as Maker;
    const turn = Math.floor(index / turns.length);
    const all = enders[maker];
    const cycle = shuffled(all, seed + Math.floor(turn / all.length) * 1_000 + maker.length);
    return { make: makers[maker], end: cycle[turn % all.length] as Way };
  });
}

async function tracesOf(ground: Ground): Promise<Traces> {
  const parts = await Promise.all([
    ...clusterNames.map(async (cluster) => [cluster, await objectTraces(ground.stage.api(cluster))] as const),
    ...ground.nodes().map(async ({ name, netns }) => {
      const [kernel, namespaces] = await Promise.all([kernelTraces(netns), namespacesOf(netns)]);
      return [`kernel of ${name},`, { ...kernel, namespaces }] as const;
    }),
  ]);
  return Object.fromEntries(
    parts.flatMap(([of, traces]) => Object.entries(traces).map(([key, text]) => [`${of} ${key}`, text])),
  );
}

export const tracesAtRest = (ground: Ground): Promise<Traces> =>
  waitUntilStable('both clusters', () => tracesOf(ground), { withinMs: 60_000, everyMs: 2_000 });

export async function isPeered(ground: Ground): Promise<void> {
  await eventually(
    'the virtual node to be Ready and both ends of the link to be connected',
    async () => {
      const api = ground.stage.api(consumer);
      const [virtual] = await api.list(virtualNodes);
      const node = virtual && (await api.get(nodes, { name: virtual.metadata.name }));
      if (!node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'))
        throw new Error(`node ${node?.metadata.name ?? '(none)'} is not Ready`);
      for (const cluster of clusterNames) {
        const links = await ground.stage.api(cluster).list(networkKinds.connections);
        const values = links.map(({ status }) => status?.value);
        if (values.join() !== 'Connected') throw new Error(`${cluster} is ${values.join() || 'without a link'}`);
      }
      return true;
    },
    unhurried,
  );
  await ground.crosses();
}

function rssMibOf({ stage: { world: clusters } }: Ground): number {
  const pids = clusterNames.flatMap((cluster) => Object.values(clusters.ownPids(cluster)).flat());
  const kib = pids.map((pid) => {
    try {
      return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
    } catch {
      return 0; // it ended while we looked
    }
  });
  return Math.round(kib.reduce((sum, one) => sum + one, 0) / 1_024);
}

/**
 * Rejects at the first round that does not come up, that leaves anything else than what was there, or that has other kernels than the manifests had in
 * another order: with what differs, and how to draw it again.
 */
export async function runRounds(ground: Ground, options: RoundsOptions): Promise<readonly Round[]> {
  const before = await tracesAtRest(ground);
  const done: Round[] = [];
  let linked: Traces | undefined;
  for (const [index, { make, end }] of pairings(options).entries()) {
    const number = index + 1;
    const seed = options.seed * 1_000 + number;
    try {
      const from = performance.now();
      await make.take(ground, seed);
      await isPeered(ground);
      const ready = performance.now();
      if (make === makers.manifests) {
        if (linked === undefined) linked = await linkedAtRest(ground);
        else await linkedAs(ground, linked);
      }
      const requested = performance.now();
      await end.take(ground, seed);
      await tidyUp(ground);
      await isAsBefore(ground, before);
      const [readyMs, goneMs] = [Math.round(ready - from), Math.round(performance.now() - requested)];
      const round = { number, made: make.by, ended: end.by, readyMs, goneMs, rssMib: rssMibOf(ground) };
      done.push(round);
      options.onRound?.(round);
    } catch (error) {
      const what = `round ${number} of seed ${options.seed}, made by ${make.by} and ended by ${end.by}`;
      throw new Error(`${what}: ${(error as Error).message}`, { cause: error });
    }
  }
  return done;
}

export async function isAsBefore(ground: Ground, before: Traces): Promise<void> {
  await eventually(
    'everything to be as before round 1',
    async () => {
      const changed = traceDifferences(before, await tracesOf(ground));
      if (changed.length > 0) throw new Error(`\n${changed.join('\n')}`);
      return true;
    },
    { ...unhurried, everyMs: 500 },
  );
}
