/** isthmus peer, isthmus unpeer. */
import { Command } from 'commander';
import { type BrokerClient, openBroker } from '#cli/broker/broker-client.ts';
import { openCluster } from '#cli/cluster/open.ts';
import { noticeOr, peeringNotice } from '#cli/offload/kept-data.ts';
import type { CliIo } from '#cli/output/io.ts';
import { printObject } from '#cli/output/print.ts';
import { createProgress } from '#cli/output/progress.ts';
import { arrow, followPeering, mustFindPeering } from '#cli/peerings/follow.ts';
import { forceUnpeer, sideOf } from '#cli/peerings/force-unpeer.ts';
import { createWaitEvents, type WaitEvents } from '#cli/peerings/wait-events.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Peering } from '#shared/schema/api/resources.ts';
import type { Peering as PeeringObject } from '#shared/schema/isthmus/peering.ts';
import { announceCluster, contextOption } from './kubeconfig-option.ts';
import { askedNetwork, type NetworkOptions, networkOptions } from './network-options.ts';
import {
  clusterName,
  extraResource,
  labelList,
  manifestOption,
  quantity,
  timeoutMsOf,
  timeoutOption,
  waitEventsOption,
  wantsEvents,
} from './options.ts';

interface PeerOptions extends NetworkOptions {
  readonly cpu?: string;
  readonly memory?: string;
  readonly pods?: string;
  readonly resource: Record<string, string>;
  readonly class?: string;
  readonly labels: Record<string, string>;
  readonly wait?: boolean;
  readonly timeout: string;
  readonly output?: 'json' | 'yaml';
}

export const peerCommand = (io: CliIo): Command =>
  networkOptions(peerTerms())
    .option('--wait', 'wait until the node is Ready, showing what happens')
    .addOption(timeoutOption('3m'))
    .addOption(manifestOption())
    .addHelpText(
      'after',
      `
With --wait and -o json, each change is printed as one line of JSON; the last has event done or failed. Without --wait,
-o prints the same wish as a Peering, to be applied in CONSUMER; the broker is not asked.

What is not asked for is limited by the provider's PeeringPolicy alone. For a pair that is peered already, the resources are changed, and of
network and labels what is named. A pair that is peered both ways has one link: the first peering decides where it is dialled.

Examples:
  isthmus peer rome milan --cpu 2 --memory 4Gi --wait
  isthmus peer rome milan --resource nvidia.com/gpu=1
  isthmus peer rome milan --labels team=shop,stage=prod
  isthmus peer rome milan --gateway-location consumer     milan cannot be dialled, rome can`,
    )
    .action((consumer: string, provider: string, options: PeerOptions) => peer(io, consumer, provider, options));

const peerTerms = (): Command =>
  new Command('peer')
    .argument('<consumer>', 'cluster that gets the node', clusterName)
    .argument('<provider>', 'cluster that runs the pods', clusterName)
    .option('--cpu <quantity>', 'CPU to ask for, for example 2 or 500m', quantity)
    .option('--memory <quantity>', 'memory to ask for, for example 4Gi', quantity)
    .option('--pods <quantity>', 'number of pods to ask for', quantity)
    .option('--resource <name=quantity>', 'another resource to ask for; may be repeated', extraResource, {})
    .option('--class <name>', 'resource class at the provider')
    .option('--labels <labels>', 'labels for your own lists, KEY=VALUE separated by commas', labelList, {});

const requested = ({ cpu, memory, pods, resource }: PeerOptions): Record<string, string> => ({
  ...resource,
  ...(cpu !== undefined && { cpu }),
  ...(memory !== undefined && { memory }),
  ...(pods !== undefined && { pods }),
});

async function peer(io: CliIo, consumer: string, provider: string, options: PeerOptions): Promise<void> {
  const network = askedNetwork(options);
  if (options.wait && options.output === 'yaml')
    throw new AppError('fields_conflict', '--wait prints lines of JSON, and --output is yaml', {
      detail: { field: 'output', value: 'yaml', remedy: 'take -o json, or leave --wait out to print a Peering' },
    });
  const events = options.wait === true && options.output === 'json';
  if (options.output !== undefined && !events) return printObject(io, options.output, peeringObject(provider, options));
  const broker = await openBroker(io);
  try {
    const peering = await broker.api.createPeering(
      {
        body: {
          consumer,
          provider,
          resources: requested(options),
          ...(options.class && { class: options.class }),
          ...(network && { network }),
          ...(Object.keys(options.labels).length > 0 && { labels: options.labels }),
        },
      },
      { repeatable: true },
    );
    if (!options.wait) {
      io.stdout.write(`peering ${arrow(peering)} (${peering.id}) is ${peering.phase}: ${peering.waitingFor}\n`);
      io.stderr.write(`follow it with: isthmus describe peering ${consumer} ${provider}\n`);
      return;
    }
    const ended = await follow(io, broker, peering, { timeoutMs: timeoutMsOf(options), until: 'Ready', events });
    if (!events) io.stdout.write(`peering ${arrow(ended)} is Ready: node ${ended.nodeName} in ${consumer}\n`);
  } finally {
    broker.close();
  }
}

/** What a user or Git applies in the consumer instead of this command. */
function peeringObject(provider: string, options: PeerOptions): PeeringObject {
  if (Object.keys(options.labels).length > 0) {
    throw new AppError('fields_conflict', '--labels cannot be said in a Peering, which --output prints', {
      detail: { field: 'output', value: options.output, remedy: 'leave out one of them' },
    });
  }
  const network = askedNetwork(options);
  return {
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'Peering',
    metadata: { name: provider },
    spec: {
      provider,
      class: options.class ?? 'default',
      resources: requested(options),
      ...(network && { network }),
    },
  };
}

interface FollowOptions {
  readonly timeoutMs: number;
  readonly until: 'Ready' | 'Gone';
  /** One line of JSON on stdout for each change, in place of the progress on stderr. */
  readonly events: boolean;
}

/** Resolves with the peering in that phase; rejects with `peering_failed` when it ends in another. */
export async function follow(
  io: CliIo,
  broker: BrokerClient,
  start: Peering,
  { timeoutMs, until, events }: FollowOptions,
): Promise<Peering> {
  const ends: readonly Peering['phase'][] = until === 'Ready' ? ['Ready', 'Failed', 'Gone'] : ['Gone'];
  const sight = events ? createWaitEvents(io, start) : progressOf(io, start, until);
  try {
    const done = ({ phase }: Peering): boolean => ends.includes(phase);
    const peering = await followPeering(io, broker, start, { done, timeoutMs, onNews: (one) => sight.waiting(one) });
    if (peering.phase !== until) throw failed(peering);
    sight.done(peering);
    return peering;
  } catch (error) {
    sight.failed(error);
    throw error;
  }
}

function progressOf(io: CliIo, start: Peering, until: FollowOptions['until']): WaitEvents {
  const step = createProgress(io).step(`${until === 'Ready' ? 'peering' : 'unpeering'} ${arrow(start)}`);
  return {
    waiting: ({ phase, waitingFor }) => step.update(waitingFor ? `${phase}, ${waitingFor}` : phase),
    done: ({ phase }) => step.done(phase),
    failed: () => step.fail(),
  };
}

function failed(peering: Peering): AppError {
  const open = peering.conditions.filter(({ status }) => status === 'False');
  const why = open.map(({ message }) => message).join('; ') || peering.waitingFor;
  const action = open.find((condition) => condition.action !== '')?.action;
  return new AppError('peering_failed', `the peering ${arrow(peering)} is ${peering.phase}: ${why}`, {
    detail: { peering: peering.id, ...(action && { remedy: action }) },
  });
}

export const unpeerCommand = (io: CliIo): Command =>
  new Command('unpeer')
    .argument('<consumer>', 'cluster that has the node', clusterName)
    .argument('<provider>', 'cluster that runs the pods', clusterName)
    .option('--wait', 'wait until nothing is left, showing what happens')
    .addOption(waitEventsOption())
    .option('--force', 'do not wait for a side that is gone for ever; refused while both answer')
    .option(
      '--kubeconfig <file>',
      'of one side: names the claims whose data is kept; with --force, of the side that is left, for a peering without a broker',
    )
    .addOption(contextOption())
    .option('--yes', 'with --force --kubeconfig: you know that the other side is gone, even if the link still answers')
    .addOption(timeoutOption('2m'))
    .addHelpText(
      'after',
      `
The end always comes: a side that is unreachable is cleaned by its agent when it is back. Unpeering twice does no harm.

With --force the side that is left stops waiting for the other, after two looks that found it gone, and the command says what stays behind
there. With --force and --kubeconfig only that cluster is asked, for every peering that no broker made.

Examples:
  isthmus unpeer rome milan --wait
  isthmus unpeer rome milan --kubeconfig rome.kubeconfig           names the claims whose data milan keeps
  isthmus unpeer rome milan --force                                milan is gone, the broker knows it
  isthmus unpeer rome milan --force --kubeconfig rome.kubeconfig   milan is gone, there is no broker`,
    )
    .action((consumer: string, provider: string, options: UnpeerOptions) => unpeer(io, consumer, provider, options));

interface UnpeerOptions {
  readonly wait?: boolean;
  readonly force?: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly yes?: boolean;
  readonly timeout: string;
  readonly output?: 'json';
}

/** By the cluster itself: the broker does not know of claims. One that is silent stops nothing. */
async function noticeBy(
  io: CliIo,
  kubeconfig: string,
  context: string | undefined,
  consumer: string,
  provider: string,
): Promise<string> {
  const kube = await openCluster({ kubeconfig, ...(context !== undefined && { context }) }, io);
  return noticeOr(async () => {
    const notice = await peeringNotice(kube, await sideOf(kube, consumer, provider), { consumer, provider });
    return notice || `no claim of ${consumer} has data at ${provider}\n`;
  }, `which claims of ${consumer} have data at ${provider}`);
}

async function unpeer(io: CliIo, consumer: string, provider: string, options: UnpeerOptions): Promise<void> {
  const { force = false, kubeconfig, context, yes = false } = options;
  const events = wantsEvents(options);
  if (kubeconfig !== undefined && force) {
    if (events)
      throw new AppError('fields_conflict', '--output prints what a broker tells, and --force --kubeconfig asks none', {
        detail: { field: 'output', value: 'json', remedy: 'leave --output out' },
      });
    await announceCluster(io, { kubeconfig, context }, kubeconfig);
    const target = { kubeconfig, ...(context !== undefined && { context }), yes };
    return forceUnpeer(io, consumer, provider, { ...target, timeoutMs: timeoutMsOf(options) });
  }
  if (yes) {
    throw new AppError('fields_conflict', '--yes goes with --force and --kubeconfig', {
      detail: { field: 'yes', value: 'true', remedy: 'leave --yes out, or add what it goes with' },
    });
  }
  const broker = await openBroker(io);
  try {
    const found = await mustFindPeering(broker, consumer, provider);
    if (found.phase === 'Gone') {
      if (events) createWaitEvents(io, found).done(found);
      else io.stdout.write(`peering ${arrow(found)} is gone already\n`);
      return;
    }
    io.stderr.write(
      kubeconfig === undefined
        ? `data of claims of ${consumer} at ${provider} is kept there: \`isthmus volume list\` in ${provider}; --kubeconfig of either names them\n`
        : await noticeBy(io, kubeconfig, context, consumer, provider),
    );
    const ending = await broker.api.deletePeering({
      path: { peering: found.id },
      ...(force && { query: { force: true } }),
    });
    if (!options.wait) {
      io.stdout.write(`peering ${arrow(ending)} is ${ending.phase}: ${ending.waitingFor}\n`);
      return;
    }
    const gone = await follow(io, broker, ending, { timeoutMs: timeoutMsOf(options), until: 'Gone', events });
    if (!events) io.stdout.write(`peering ${arrow(gone)} is gone\n`);
    if (gone.leftBehind.length > 0) {
      io.stderr.write('left behind on a side that could not be reached; its agent cleans up when it is back:\n');
      for (const what of gone.leftBehind) io.stderr.write(`  ${what}\n`);
    }
  } finally {
    broker.close();
  }
}
