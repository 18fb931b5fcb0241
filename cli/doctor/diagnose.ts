/** Gathers the facts of one or two clusters, and of the network between them where nothing else is wrong. */

import type { KubeTarget } from '#cli/cluster/kubeconfig-files.ts';
import { openCluster } from '#cli/cluster/open.ts';
import { halfOf, testHomeHalf } from '#cli/network-test/home-half.ts';
import { testNetwork } from '#cli/network-test/run.ts';
import { removeTest } from '#cli/network-test/test-pods.ts';
import type { CliIo } from '#cli/output/io.ts';
import { during, type Progress } from '#cli/output/progress.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { whatBrokerSays } from './broker.ts';
import { type Finding, isWarning } from './causes.ts';
import { awaited, decide } from './decide.ts';
import type { DoctorFacts, Looked, Probed } from './facts.ts';
import { lookAt } from './look.ts';

interface Place {
  readonly target: KubeTarget;
  readonly required: boolean;
}

export interface Question {
  /** Consumer first. One or two; with none, only the broker is asked. `required`: named, and not merely found. */
  readonly places: readonly Place[];
  /** Where both are named. */
  readonly pair?: readonly [consumer: string, provider: string];
  /** Whether probe pods may be put into both clusters. */
  readonly probe: boolean;
  readonly timeoutMs: number;
}

interface Answer {
  readonly facts: DoctorFacts;
  readonly findings: readonly Finding[];
}

const probesWithinMs = 60_000;

export async function diagnose(io: CliIo, progress: Progress, question: Question): Promise<Answer> {
  const { probe } = question;
  const { facts, findings, sighted } = await settled(io, progress, question);
  // A probe tells where packets end; while something else is broken, its failure tells nothing new.
  if (!probe || findings.some((one) => !isWarning(one))) return { facts, findings };
  const probed = await probeBetween(
    io,
    progress,
    facts,
    sighted.map(({ place }) => place.target),
  );
  if (probed === undefined) return { facts, findings };
  const more = { ...facts, probed };
  return { facts: more, findings: decide(more) };
}

interface Looks extends Answer {
  readonly sighted: readonly Sighted[];
}

/** Pods of ours that have just been replaced get this long to run, or to say why they do not. */
const settleMs = 75_000;
const lookAgainMs = 1_500;

/** Looks again while a pod of ours starts, whose absence may be the cause of everything else. */
async function settled(io: CliIo, progress: Progress, question: Question): Promise<Looks> {
  const deadline = io.clock.now() + settleMs;
  let looks = await during(progress, 'looking', () => look(io, question));
  if (awaited(looks.facts, looks.findings).length === 0) return looks;
  return during(progress, 'waiting for pods that start', async (step) => {
    for (;;) {
      const names = awaited(looks.facts, looks.findings);
      if (names.length === 0 || io.clock.now() >= deadline) return looks;
      step.update(names.join(', '));
      await io.clock.sleep(lookAgainMs, io.signal);
      looks = await look(io, question);
    }
  });
}

async function look(io: CliIo, { places, pair, timeoutMs }: Question): Promise<Looks> {
  const [seen, broker] = await Promise.all([
    Promise.all(places.map((place) => lookAt(io, place.target, timeoutMs))),
    pair === undefined ? undefined : whatBrokerSays(io, pair, timeoutMs),
  ]);
  const sighted = ordered(
    seen.map((looked, at) => ({ looked, place: places[at] as Place })),
    pair,
  );
  const clusters = sighted.map(({ looked }) => looked);
  if (clusters.length === 0 && broker === undefined) throw nothingToAsk();
  const peer = clusters.length === 1 ? pair?.find((name) => name !== clusters[0]?.cluster) : undefined;
  const facts: DoctorFacts = {
    now: io.clock.now(),
    clusters,
    ...(peer !== undefined && { peer }),
    ...(broker !== undefined && { broker }),
  };
  return { facts, findings: decide(facts), sighted };
}

const nothingToAsk = (): AppError =>
  new AppError('invalid_input', 'neither a kubeconfig of one of the two clusters nor a login at a broker is there', {
    detail: { field: 'kubeconfig', value: '', remedy: 'name them with --kubeconfig FILE and --peer-kubeconfig FILE' },
  });

interface Sighted {
  readonly looked: Looked;
  readonly place: Place;
}

/** Consumer first. A cluster that did not answer is the one that its place says. */
function ordered(all: readonly Sighted[], pair: Question['pair']): readonly Sighted[] {
  if (pair === undefined) return all;
  const named = all.flatMap((one, at): Sighted[] => {
    const { looked, place } = one;
    if (looked.facts === undefined) return [{ place, looked: { ...looked, cluster: pair[at] ?? looked.cluster } }];
    if (pair.includes(looked.cluster)) return [one];
    if (!place.required) return [];
    throw new AppError(
      'invalid_input',
      `${place.target.kubeconfig} is the kubeconfig of ${looked.cluster}, not of ${pair.join(' or ')}`,
      {
        detail: { field: 'kubeconfig', value: place.target.kubeconfig, accepted: pair },
      },
    );
  });
  return named.toSorted((a, b) => pair.indexOf(a.looked.cluster) - pair.indexOf(b.looked.cluster));
}

/** Undefined: there are not two clusters with a link. */
async function probeBetween(
  io: CliIo,
  progress: Progress,
  { clusters }: DoctorFacts,
  targets: readonly KubeTarget[],
): Promise<Probed | undefined> {
  const [a, b] = clusters;
  const [mine, theirs] = targets;
  if (a?.facts === undefined || b?.facts === undefined || mine === undefined || theirs === undefined) return undefined;
  const [here, there] = [ownMember(a.facts.sides, b.cluster), ownMember(b.facts.sides, a.cluster)];
  if (here?.gateway === undefined || there?.gateway === undefined) return undefined;
  try {
    const grounds = [
      { target: mine, kube: await openCluster(mine, io), side: here },
      { target: theirs, kube: await openCluster(theirs, io), side: there },
    ] as const;
    const options = { basic: true, nodePort: false, timeoutMs: probesWithinMs };
    const outside = { clock: io.clock, progress, signal: io.signal };
    const half = halfOf(grounds);
    const report = await (half ? testHomeHalf(half, options, outside) : testNetwork(grounds, options, outside));
    return { rows: report.rows.length, failed: report.rows.flatMap(({ failing }) => failing ?? []) };
  } catch (error) {
    io.signal.throwIfAborted();
    return { rows: 0, failed: [], none: `no probes between pods: ${messageOf(error)}` };
  } finally {
    await Promise.all(targets.map((target) => removeTest(target, io.clock).catch(() => false)));
  }
}
