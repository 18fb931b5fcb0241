/** isthmus move volume: the volume of a claim goes to another cluster, and back when that is wanted. */
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import { elapsed } from '#cli/output/duration.ts';
import type { CliIo } from '#cli/output/io.ts';
import { createProgress, during } from '#cli/output/progress.ts';
import { memoryText } from '#cli/output/quantity-text.ts';
import { tryParseQuantity } from '#shared/domain/quantity.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import {
  localTarget,
  type MoveOrder,
  type MovePhase,
  type VolumeMove,
  volumeMoves,
} from '#shared/schema/isthmus/volume-move.ts';
import { changingKubeconfigOption, contextOption } from './kubeconfig-option.ts';
import { clusterName, lifetime, timeoutMsOf, timeoutOption } from './options.ts';

interface MoveOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly namespace: string;
  readonly to?: string;
  readonly undoWindow?: number;
  readonly image?: string;
  readonly bandwidth?: number;
  readonly detach?: boolean;
  readonly copyBack?: boolean;
  readonly discardNewWrites?: boolean;
  readonly timeout: string;
}

/** In bytes. */
function bandwidth(text: string): number {
  const bytes = Number((tryParseQuantity(text) ?? 0n) / 1_000_000_000n);
  if (bytes >= 1_024) return bytes;
  throw new InvalidArgumentError('Accepted are bytes in a second, from 1Ki on, for example 10Mi.');
}

const actions = ['start', 'status', 'abort', 'undo', 'confirm'] as const;
type Action = (typeof actions)[number];
const over: ReadonlySet<MovePhase> = new Set(['Refused', 'Confirmed', 'Undone', 'Aborted']);

export const moveCommand = (io: CliIo): Command =>
  new Command('move').addCommand(
    new Command('volume')
      .description('move the volume of a claim to another cluster, with a way back')
      .argument('<claim>', 'name of the PersistentVolumeClaim')
      .addArgument(new Argument('[action]', 'what to do with the move of this claim').choices(actions).default('start'))
      .addOption(changingKubeconfigOption({ of: 'the cluster with the claim' }))
      .addOption(contextOption())
      .requiredOption('-n, --namespace <namespace>', 'namespace of the claim')
      .option('--to <cluster>', 'start: `local`, or the provider that is to have the volume', clusterName)
      .option('--undo-window <duration>', 'start: how long the volume that is left is kept (default: 24h)', lifetime)
      .option('--image <reference>', 'start: image of the pods that copy (default: that of the agent)')
      .option('--bandwidth <quantity>', 'start: most that the copy sends in a second, for example 10Mi', bandwidth)
      .option('--detach', 'start, undo: do not wait for the end')
      .addOption(new Option('--copy-back', 'undo: what was written since comes along').conflicts('discardNewWrites'))
      .option('--discard-new-writes', 'undo: the claim gets the volume as it was left')
      .addOption(timeoutOption('24h'))
      .addHelpText(
        'after',
        `
Pods go on while the volume is copied. Then they end, wait until the rest is copied and compared, and start again where the volume is. Until the
undo window is over, undo gives the claim the volume that it had; confirm deletes that one at once.

Examples:
  isthmus move volume data -n shop --to milan
  isthmus move volume data -n shop --to local --detach
  isthmus move volume data -n shop status
  isthmus move volume data -n shop undo --copy-back
  isthmus move volume data -n shop confirm`,
      )
      .action((claim: string, action: Action, options: MoveOptions) => run(io, claim, action, options)),
  );

interface Subject {
  readonly kube: KubeClient;
  readonly ref: { readonly namespace: string; readonly name: string };
  readonly options: MoveOptions;
}

async function run(io: CliIo, claim: string, action: Action, options: MoveOptions): Promise<void> {
  const kube = await openCluster(options, io);
  const subject = { kube, ref: { namespace: options.namespace, name: claim }, options };
  for (const [flag, given, of] of [
    ['--to', options.to !== undefined, 'start'],
    ['--undo-window', options.undoWindow !== undefined, 'start'],
    ['--image', options.image !== undefined, 'start'],
    ['--bandwidth', options.bandwidth !== undefined, 'start'],
    ['--copy-back', options.copyBack, 'undo'],
    ['--discard-new-writes', options.discardNewWrites, 'undo'],
  ] as const)
    if (given && action !== of)
      throw new AppError('invalid_input', `${flag} is an option of ${of}, not of ${action}`, {
        detail: { field: flag },
      });
  switch (action) {
    case 'start':
      return start(io, subject);
    case 'status':
      return void io.stdout.write(`${report(await mustFind(subject))}\n`);
    case 'abort':
      return order(io, subject, 'abort', ['Preparing', 'Copying', 'Freezing', 'FinalCopy', 'Pending']);
    case 'confirm':
      return order(io, subject, 'confirm', ['Undoable']);
    case 'undo':
      if (!options.copyBack && !options.discardNewWrites)
        throw new AppError(
          'invalid_input',
          'undo needs --copy-back or --discard-new-writes: pods may have written to the volume since it was moved',
          {
            detail: { field: '--copy-back' },
          },
        );
      return order(io, subject, options.copyBack ? 'undo-copy-back' : 'undo-discard-new-writes', ['Undoable']);
  }
}

const find = ({ kube, ref }: Subject): Promise<VolumeMove | undefined> => kube.get(volumeMoves, ref);

async function mustFind(subject: Subject): Promise<VolumeMove> {
  const found = await find(subject);
  if (found) return found;
  const { namespace, name } = subject.ref;
  throw new AppError('not_found', `there is no move of claim ${namespace}/${name}`, {
    detail: { field: 'claim', value: name, remedy: 'see all with `kubectl get volumemoves -A`' },
  });
}

async function start(io: CliIo, subject: Subject): Promise<void> {
  const { kube, ref, options } = subject;
  if (options.to === undefined)
    throw new AppError('invalid_input', 'a move needs --to: accepted is local or the name of a provider', {
      detail: { field: '--to' },
    });
  const before = await find(subject);
  const phase = before?.status?.phase ?? 'Pending';
  if (before && !over.has(phase))
    throw new AppError(
      'in_use',
      `claim ${ref.namespace}/${ref.name} is being moved to ${before.spec.target}: ${phase}`,
      {
        detail: {
          field: 'claim',
          value: ref.name,
          remedy: phase === 'Undoable' ? 'confirm that move or undo it first' : 'wait for it, or abort it first',
        },
      },
    );
  if (before) await remove(io, subject, before);
  await kube.create<VolumeMove>(volumeMoves, {
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'VolumeMove',
    metadata: { ...ref },
    spec: {
      target: options.to,
      undoWindowSeconds: options.undoWindow ?? 86_400,
      ...(options.image !== undefined && { image: options.image }),
      ...(options.bandwidth !== undefined && { bytesPerSecond: options.bandwidth }),
    },
  });
  await follow(io, subject, `moving ${ref.namespace}/${ref.name} to ${options.to}`, options.detach ?? false);
}

/** Of a move that is over: a claim has one at a time. */
async function remove(io: CliIo, { kube, ref, options }: Subject, move: VolumeMove): Promise<void> {
  const { uid } = move.metadata;
  await kube.delete(volumeMoves, ref);
  await poll(
    io,
    timeoutMsOf(options),
    async () => ((await kube.get(volumeMoves, ref))?.metadata.uid === uid ? undefined : true),
    () => new AppError('deadline_exceeded', `the earlier move of claim ${ref.name} does not go`),
  );
}

async function order(io: CliIo, subject: Subject, what: MoveOrder, when: readonly MovePhase[]): Promise<void> {
  const { kube, ref, options } = subject;
  const move = await mustFind(subject);
  const phase = move.status?.phase ?? 'Pending';
  if (!when.includes(phase))
    throw new AppError(
      what === 'abort' ? 'in_use' : 'move_not_undoable',
      `the move of claim ${ref.namespace}/${ref.name} is ${phase}: ${what} is accepted while it is ${when.join(', ')}`,
      {
        detail: { field: 'action', value: what },
      },
    );
  // The same order once more is a change, too.
  if (move.spec.order !== undefined) await kube.mergePatch(volumeMoves, ref, { spec: { order: null } });
  try {
    await kube.mergePatch(volumeMoves, ref, { spec: { order: what } });
  } catch (error) {
    // It was Undoable a moment ago.
    if (codeOf(error) !== 'kube_invalid' || what !== 'confirm') throw error;
    throw new AppError('move_not_undoable', messageOf(error), { detail: { field: 'action', value: what } });
  }
  const { generation } = (await mustFind(subject)).metadata;
  await follow(io, subject, `${what} of the move of ${ref.namespace}/${ref.name}`, options.detach ?? false, generation);
}

/** Until it rests; `generation`: of an order that has to be taken up first. */
async function follow(io: CliIo, subject: Subject, doing: string, detach: boolean, generation?: number): Promise<void> {
  const { options } = subject;
  let news = 'the agent has not looked at it';
  const move = await during(createProgress(io), doing, (step) =>
    poll(
      io,
      timeoutMsOf(options),
      async () => {
        const now = await mustFind(subject);
        news = newsOf(now) || news;
        step.update(news);
        const phase = now.status?.phase ?? 'Pending';
        if (phase === 'Pending' || (generation !== undefined && now.status?.settledGeneration !== generation))
          return undefined;
        return detach || over.has(phase) || phase === 'Undoable' ? now : undefined;
      },
      () =>
        new AppError('deadline_exceeded', `${doing} goes on: ${news}`, {
          detail: { remedy: 'ask with status; it goes on without this command' },
        }),
    ),
  );
  await conclude(io, subject, move);
}

async function conclude(io: CliIo, subject: Subject, move: VolumeMove): Promise<void> {
  const { phase, message = '' } = move.status ?? { phase: 'Pending' };
  if (phase === 'Refused') {
    await remove(io, subject, move);
    throw new AppError('move_refused', message);
  }
  if (phase === 'Aborted' && move.spec.order !== 'abort') throw new AppError('move_failed', report(move));
  if (phase === 'Undoable' && move.spec.order !== undefined) throw new AppError('move_failed', message);
  io.stdout.write(`${report(move)}\n`);
}

const bytesText = (bytes: number): string => memoryText(String(bytes)) || '0';

/** Bytes, rate and time left of the pass that runs. */
function newsOf({ status }: VolumeMove): string {
  if (status === undefined) return '';
  const { phase, message, bytesDone, bytesTotal, bytesPerSecond } = status;
  const isCopying = phase === 'Copying' || phase === 'FinalCopy';
  if (!isCopying || bytesDone === undefined || bytesTotal === undefined)
    return [phase, message].filter(Boolean).join(', ');
  const left = bytesPerSecond ? `, ${elapsed(((bytesTotal - bytesDone) / bytesPerSecond) * 1_000)} left` : '';
  const rate = bytesPerSecond ? `, ${bytesText(bytesPerSecond)}/s${left}` : '';
  return `${phase}, ${bytesText(bytesDone)} of ${bytesText(bytesTotal)}${rate}${message ? `, ${message}` : ''}`;
}

function report(move: VolumeMove): string {
  const { metadata, spec, status } = move;
  const claim = `${metadata.namespace}/${metadata.name}`;
  const at = (side: string | undefined): string => (side === localTarget ? 'this cluster' : `cluster ${side}`);
  const equal =
    status?.verifiedFiles === undefined
      ? ''
      : `: ${status.verifiedFiles} files, ${bytesText(status.verifiedBytes ?? 0)}, with equal checksums`;
  const frozen = status?.frozenSeconds === undefined ? '' : `; pods waited ${status.frozenSeconds} s`;
  switch (status?.phase) {
    case 'Undoable':
      return [
        `the volume of claim ${claim} is in ${at(status.to?.at)}${equal}${frozen}`,
        `${status.undoUntil === undefined ? 'for now' : `until ${status.undoUntil}`} the one that it had is kept in ${at(status.from?.at)}; undo goes back to it, confirm deletes it`,
        ...(status.message ? [status.message] : []),
      ].join('\n');
    case 'Confirmed':
      return `the volume of claim ${claim} is in ${at(status.to?.at)}; the one in ${at(status.from?.at)} ${status.message ?? 'is deleted'}`;
    case 'Undone':
      return `the volume of claim ${claim} is in ${at(status.to?.at)} again${equal}${frozen}${status.message ? `; ${status.message}` : ''}`;
    case 'Aborted':
      return `the move of claim ${claim} to ${spec.target} was given up, its volume is where it was: ${status.message ?? ''}`;
    default:
      return `the move of claim ${claim} to ${spec.target}: ${newsOf(move) || 'the agent has not looked at it'}`;
  }
}
