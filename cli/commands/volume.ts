/** isthmus volume list, adopt, discard: data of consumers that this provider keeps after their claims ended. */
import { Command } from 'commander';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import { createProgress, during } from '#cli/output/progress.ts';
import { memoryText } from '#cli/output/quantity-text.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { namespaceNameProblem } from '#shared/domain/system-namespaces.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type RetainedVolume, retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { changingKubeconfigOption, contextOption, kubeconfigOption } from './kubeconfig-option.ts';
import { clusterName, outputOption, timeoutMsOf, timeoutOption } from './options.ts';

interface Target {
  readonly kubeconfig: string;
  readonly context?: string;
}
interface AdoptOptions extends Target {
  readonly namespace?: string;
  readonly claim?: string;
  readonly timeout: string;
}

export const volumeCommand = (io: CliIo): Command =>
  new Command('volume')
    .addCommand(
      new Command('list')
        .alias('ls')
        .description('what is kept, for which consumer, and until when it is promised')
        .addOption(kubeconfigOption())
        .addOption(contextOption())
        .option('--consumer <id>', 'only of this consumer', clusterName)
        .addOption(outputOption())
        .action((options: Target & { consumer?: string; output: Format }) => list(io, options)),
    )
    .addCommand(
      new Command('adopt')
        .description('give a kept volume to a claim again')
        .argument('<name>', 'name of the RetainedVolume')
        .addOption(changingKubeconfigOption())
        .addOption(contextOption())
        .option(
          '-n, --namespace <namespace>',
          'make a claim for it there; without it, the claim that had it gets it back',
        )
        .option('--claim <name>', 'name of that claim; that of the claim that had it unless told')
        .addOption(timeoutOption('1m'))
        .addHelpText(
          'after',
          `
Without --namespace the volume is reserved for the claim of the consumer that had it: peer and offload again, and create the claim; it gets this data.

Examples:
  isthmus volume adopt pvc-5c0e --kubeconfig milan.kubeconfig
  isthmus volume adopt pvc-5c0e --namespace rescue --claim data --kubeconfig milan.kubeconfig`,
        )
        .action((name: string, options: AdoptOptions) => adopt(io, name, options)),
    )
    .addCommand(
      new Command('discard')
        .description('delete the data of a kept volume, for good')
        .argument('<name>', 'name of the RetainedVolume')
        .addOption(changingKubeconfigOption())
        .addOption(contextOption())
        .addOption(timeoutOption('2m'))
        .action((name: string, options: Target & { timeout: string }) => discard(io, name, options)),
    );

const homeOf = ({ spec }: RetainedVolume): string =>
  spec.claim
    ? `${spec.claim.namespace}/${spec.claim.name}`
    : `${spec.remoteClaim.namespace}/${spec.remoteClaim.name} here`;

async function list(io: CliIo, options: Target & { consumer?: string; output: Format }): Promise<void> {
  const kube = await openCluster(options, io);
  const all = await kube.list(retainedVolumes);
  printListing(io, options.output, {
    items: all.filter(({ spec }) => options.consumer === undefined || spec.consumer === options.consumer),
    columns: [
      { head: 'name', cell: ({ metadata }) => metadata.name },
      { head: 'consumer', cell: ({ spec }) => spec.consumer },
      { head: 'claim', cell: homeOf },
      { head: 'size', cell: ({ spec }) => memoryText(spec.size) },
      { head: 'class', cell: ({ spec }) => spec.storageClassName ?? '' },
      { head: 'phase', cell: ({ status }) => status?.phase ?? 'Kept' },
      { head: 'expires', cell: ({ spec }) => spec.expiresAt },
    ],
    name: ({ metadata }) => `retainedvolume/${metadata.name}`,
    none: 'nothing is kept',
  });
}

async function mustFind(kube: KubeClient, name: string): Promise<RetainedVolume> {
  const found = await kube.get(retainedVolumes, { name });
  if (found !== undefined) return found;
  throw new AppError('not_found', `no RetainedVolume ${name} in the cluster at ${kube.server}`, {
    detail: { field: 'name', value: name, remedy: 'see them with `isthmus volume list`' },
  });
}

interface Look {
  readonly done: boolean;
  readonly news: string;
}

const until = (
  io: CliIo,
  what: string,
  timeoutMs: number,
  doing: string,
  look: () => Promise<Look>,
  remedy = 'see `kubectl describe retainedvolumes`; it goes on without this command',
): Promise<unknown> =>
  during(createProgress(io), `${doing} ${what}`, (step) => {
    let news = 'the agent has not looked at it';
    return poll(
      io,
      timeoutMs,
      async () => {
        const seen = await look();
        news = seen.news || news;
        step.update(news);
        return seen.done || undefined;
      },
      () =>
        new AppError('deadline_exceeded', `${doing} ${what} goes on: ${news}`, {
          detail: { remedy },
        }),
    );
  });

/** Until no data is kept under this name any more. */
const untilGone = (io: CliIo, kube: KubeClient, name: string, timeoutMs: number, doing: string): Promise<unknown> =>
  until(io, name, timeoutMs, doing, async () => {
    const record = await kube.get(retainedVolumes, { name });
    const news = [record?.status?.phase, record?.status?.message].filter(Boolean).join(', ');
    return record === undefined ? { done: true, news: 'no longer kept' } : { done: false, news };
  });

/** Why there is nothing to adopt: its record or its PersistentVolume is gone. */
const takenOrLost = (record: RetainedVolume | undefined): string =>
  record === undefined ? 'a claim has its data, or it was discarded' : 'its PersistentVolume is gone';

async function adopt(io: CliIo, name: string, options: AdoptOptions): Promise<void> {
  const kube = await openCluster(options, io);
  const { spec } = await mustFind(kube, name);
  if (spec.discard)
    throw new AppError('in_use', `RetainedVolume ${name} is being discarded`, {
      detail: { field: 'name', value: name },
    });
  const isOwn = spec.remoteClaim.namespace === storageNamespace;
  if (isOwn && options.namespace === undefined)
    throw new AppError(
      'invalid_input',
      `RetainedVolume ${name} was the volume of a claim of this cluster: --namespace names where a claim is to be made for it`,
      { detail: { field: '--namespace', ...(spec.claim && { remedy: `add --namespace ${spec.claim.namespace}` }) } },
    );
  const { namespace = spec.remoteClaim.namespace } = options;
  // The claim that is made again has the consumer's name for it here, also where the one that had the volume had got another one.
  const { claim = spec.claim?.name ?? spec.remoteClaim.name } = options;
  const problem = namespaceNameProblem(namespace);
  if (problem !== undefined)
    throw new AppError('invalid_input', `the namespace ${problem}`, {
      detail: { field: 'namespace', value: namespace },
    });
  const target = `${namespace}/${claim}`;
  if (options.namespace !== undefined && (await kube.get(persistentVolumeClaims, { namespace, name: claim })))
    throw new AppError('already_exists', `there is a claim ${target} already`, {
      detail: { field: 'claim', value: claim, remedy: 'name another one with --claim' },
    });
  await kube.mergePatch(retainedVolumes, { name }, { spec: { adopt: { namespace, claim } } });
  if (options.namespace === undefined) {
    io.stdout.write(
      `RetainedVolume ${name} is reserved for claim ${target} of ${spec.consumer}, which gets it once it exists\n`,
    );
    return;
  }
  const timeoutMs = timeoutMsOf(options);
  // Kubernetes looks again only after 15 s at a claim that comes before its volume is free.
  await until(
    io,
    name,
    timeoutMs,
    'reserving',
    async () => {
      const record = await kube.get(retainedVolumes, { name });
      const volume = await kube.get(persistentVolumes, { name });
      if (record === undefined || volume === undefined)
        throw new AppError('not_found', `RetainedVolume ${name} cannot be adopted any more: ${takenOrLost(record)}`, {
          detail: { field: 'name', value: name, remedy: 'see what is kept with `isthmus volume list`' },
        });
      const { claimRef } = volume.spec ?? {};
      const isFree = claimRef?.namespace === namespace && claimRef.name === claim && claimRef.uid === undefined;
      const phase = volume.status?.phase;
      return { done: isFree && phase === 'Available', news: `its PersistentVolume is ${phase ?? 'new'}` };
    },
    'see `kubectl describe retainedvolumes`; the order stays, and this command goes on with it when it is run again',
  );
  await kube.create<PersistentVolumeClaim>(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace, name: claim },
    spec: {
      volumeName: name,
      storageClassName: spec.storageClassName ?? '',
      volumeMode: spec.volumeMode,
      accessModes: [...spec.accessModes],
      resources: { requests: { storage: spec.size } },
    },
  });
  await untilGone(io, kube, name, timeoutMs, 'adopting');
  await until(io, target, timeoutMs, 'binding', async () => {
    const phase = (await kube.get(persistentVolumeClaims, { namespace, name: claim }))?.status?.phase;
    return { done: phase === 'Bound', news: phase ?? '' };
  });
  io.stdout.write(`claim ${target} has the data of ${homeOf({ spec } as RetainedVolume)}\n`);
}

async function discard(io: CliIo, name: string, options: Target & { timeout: string }): Promise<void> {
  const kube = await openCluster(options, io);
  const record = await mustFind(kube, name);
  if (record.spec.adopt !== undefined)
    throw new AppError(
      'in_use',
      `RetainedVolume ${name} is reserved for claim ${record.spec.adopt.namespace}/${record.spec.adopt.claim}`,
      {
        detail: {
          field: 'name',
          value: name,
          remedy: `take that back first: kubectl patch retainedvolume ${name} --type=merge -p '{"spec":{"adopt":null}}'`,
        },
      },
    );
  await kube.mergePatch(retainedVolumes, { name }, { spec: { discard: true } });
  await untilGone(io, kube, name, timeoutMsOf(options), 'discarding');
  io.stdout.write(`the data of ${homeOf(record)} of ${record.spec.consumer} is deleted\n`);
}
