/** isthmus slice create, isthmus slice list: capacity asked for and granted, from inside a cluster. */
import { Command } from 'commander';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import { consumerOf, isGuestSlice } from '#cli/offload/guests.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing, printObject } from '#cli/output/print.ts';
import { createProgress, during } from '#cli/output/progress.ts';
import { memoryText } from '#cli/output/quantity-text.ts';
import { namespaces } from '#shared/domain/core-kinds.ts';
import { annotation, label, noNodeReadyReason } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type Quota, quotas } from '#shared/schema/liqo/quota.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { changingKubeconfigOption, contextOption, kubeconfigOption } from './kubeconfig-option.ts';
import {
  askedResources,
  clusterName,
  manifestOption,
  outputOption,
  type ResourceOptions,
  resourceOptions,
  timeoutMsOf,
  timeoutOption,
} from './options.ts';

interface CreateOptions extends ResourceOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly provider: string;
  readonly class?: string;
  readonly virtualNode: boolean;
  readonly timeout: string;
  readonly output?: 'json' | 'yaml';
}

export const sliceCommand = (io: CliIo): Command =>
  new Command('slice')
    .addCommand(
      resourceOptions(
        new Command('create')
          .description('ask a provider for (more) capacity; each slice is a node of its own')
          .argument('<name>', 'name of the slice, and of its node', clusterName)
          .addOption(changingKubeconfigOption())
          .addOption(contextOption())
          .requiredOption(
            '--provider <id>',
            'cluster ID of the provider, with whom this cluster is peered',
            clusterName,
          ),
        'asked for',
      )
        .option('--class <name>', 'resource class; the provider decides what it means')
        .option('--no-virtual-node', 'only reserve: no node is made')
        .addOption(timeoutOption('1m'))
        .addOption(manifestOption())
        .addHelpText(
          'after',
          '\nExamples:\n  isthmus slice create milan-gpu --provider milan --resource nvidia.com/gpu=1 --kubeconfig rome.kubeconfig',
        )
        .action((name: string, options: CreateOptions) => create(io, name, options)),
    )
    .addCommand(
      new Command('list')
        .alias('ls')
        .description('slices of this cluster and of its guests')
        .addOption(kubeconfigOption())
        .addOption(contextOption())
        .addOption(outputOption())
        .action((options: { kubeconfig: string; context?: string; output: Format }) => list(io, options)),
    );

async function tenantNamespaceOf(kube: KubeClient, provider: string): Promise<string> {
  const all = await kube.list(namespaces, `${label.tenantNamespace}=true`);
  const found = all.find(({ metadata }) => metadata.labels?.[label.remoteClusterId] === provider);
  if (found !== undefined) return found.metadata.name;
  throw new AppError('not_found', `the cluster at ${kube.server} is not peered with ${provider}`, {
    detail: {
      field: 'provider',
      value: provider,
      accepted: all.flatMap(({ metadata }) => metadata.labels?.[label.remoteClusterId] ?? []),
      remedy: 'peer them first with `isthmus peer CONSUMER PROVIDER`',
    },
  });
}

async function create(io: CliIo, name: string, options: CreateOptions): Promise<void> {
  const kube = await openCluster(options, io);
  const { provider } = options;
  const namespace = await tenantNamespaceOf(kube, provider);
  const ref = { namespace, name };
  const wanted: ResourceSlice = {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'ResourceSlice',
    metadata: {
      ...ref,
      labels: { [label.replication]: 'true', [label.remoteId]: provider, [label.remoteClusterId]: provider },
      ...(options.virtualNode && { annotations: { [annotation.createVirtualNode]: 'true' } }),
    },
    spec: { class: options.class ?? 'default', providerClusterID: provider, resources: askedResources(options) },
  };
  if (options.output !== undefined) return printObject(io, options.output, wanted);
  await kube.create(resourceSlices, wanted);
  const verdict = await during(createProgress(io), `asking ${provider} for slice ${name}`, () =>
    poll(
      io,
      timeoutMsOf(options),
      async () => {
        const conditions = (await kube.get(resourceSlices, ref))?.status?.conditions ?? [];
        const denied = conditions.find(({ status }) => status === 'Denied');
        const both = conditions.filter(({ status }) => status === 'Accepted').length === 2;
        return denied ?? (both ? 'accepted' : undefined);
      },
      () =>
        new AppError('deadline_exceeded', `${provider} has not answered for slice ${name} yet`, {
          detail: { remedy: `see \`kubectl -n ${namespace} describe resourceslice ${name}\`` },
        }),
    ),
  );
  if (verdict !== 'accepted') {
    throw new AppError('command_failed', `${provider} denied slice ${name}: ${verdict.message ?? verdict.reason}`, {
      detail: {
        remedy:
          verdict.reason === noNodeReadyReason
            ? `the slice stays, and is granted once a node of ${provider} is Ready; look at the nodes there`
            : `ask for less, or delete it: kubectl -n ${namespace} delete resourceslice ${name}`,
      },
    });
  }
  const granted = (await kube.get(resourceSlices, ref))?.status?.resources ?? {};
  io.stdout.write(`${provider} grants slice ${name}: ${amounts(granted)}\n`);
}

const amounts = (resources: Readonly<Record<string, string | number>> = {}): string =>
  Object.entries(resources)
    .map(([name, value]) => `${name} ${/memory|storage/.test(name) ? memoryText(String(value)) : value}`)
    .join(', ');

const verdictOf = (slice: ResourceSlice, type: string): string =>
  slice.status?.conditions?.find((condition) => condition.type === type)?.status ?? 'Pending';

async function list(io: CliIo, options: { kubeconfig: string; context?: string; output: Format }): Promise<void> {
  const kube = await openCluster(options, io);
  const [items, limits] = await Promise.all([kube.list(resourceSlices), kube.list(quotas)]);
  const quotaOf = (slice: ResourceSlice): Quota | undefined =>
    limits.find(
      ({ metadata }) =>
        metadata.namespace === slice.metadata.namespace &&
        metadata.labels?.[label.resourceSliceName] === slice.metadata.name,
    );
  const peer = (slice: ResourceSlice): string =>
    isGuestSlice(slice) ? consumerOf(slice) : (slice.metadata.labels?.[label.remoteId] ?? '');
  printListing(io, options.output, {
    items,
    columns: [
      { head: 'name', cell: ({ metadata }) => metadata.name },
      { head: 'role', cell: (slice) => (isGuestSlice(slice) ? 'provider' : 'consumer') },
      { head: 'peer', cell: peer },
      { head: 'class', cell: ({ spec }) => spec?.class || 'default' },
      { head: 'authentication', cell: (slice) => verdictOf(slice, 'Authentication') },
      { head: 'resources', cell: (slice) => verdictOf(slice, 'Resources') },
      { head: 'granted', cell: ({ status }) => amounts(status?.resources) },
      { head: 'used', cell: (slice) => (isGuestSlice(slice) ? amounts(quotaOf(slice)?.status?.used) : '') },
    ],
    name: ({ metadata }) => `resourceslice/${metadata.name}`,
    none: 'no slices; `isthmus slice create NAME --provider ID` asks for one',
  });
}
