/** isthmus offload namespace, isthmus unoffload namespace. */
import { isDeepStrictEqual } from 'node:util';
import { Command, Option } from 'commander';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import { orLater } from '#cli/cluster/retry.ts';
import { keptNotice, keptSnapshotsNotice, noticeOr, remoteVolumes } from '#cli/offload/kept-data.ts';
import { clusterSelector } from '#cli/offload/selector.ts';
import type { CliIo } from '#cli/output/io.ts';
import { printObject } from '#cli/output/print.ts';
import { createProgress, during, type Step } from '#cli/output/progress.ts';
import { namespaces } from '#shared/domain/core-kinds.ts';
import { namespaceOffloadingName } from '#shared/domain/liqo-keys.ts';
import { isSystemNamespace, namespaceNameProblem, remoteNamespaceProblem } from '#shared/domain/system-namespaces.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import {
  NamespaceMappingStrategy,
  type NamespaceOffloading,
  type NamespaceOffloadingSpec,
  namespaceOffloadings,
  PodOffloadingStrategy,
} from '#shared/schema/liqo/namespace-offloading.ts';
import { changingKubeconfigOption, contextOption } from './kubeconfig-option.ts';
import { collect, manifestOption, timeoutMsOf, timeoutOption } from './options.ts';

interface OffloadOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly podOffloadingStrategy: PodOffloadingStrategy;
  readonly namespaceMappingStrategy: NamespaceMappingStrategy;
  readonly strategy?: PodOffloadingStrategy;
  readonly mapping?: NamespaceMappingStrategy;
  readonly remoteNamespaceName?: string;
  readonly selector: readonly string[];
  readonly timeout: string;
  readonly output?: 'json' | 'yaml';
}

export const offloadCommand = (io: CliIo): Command =>
  new Command('offload').addCommand(
    new Command('namespace')
      .alias('ns')
      .description('let the pods of a namespace run at the providers of its cluster')
      .argument('<namespace>', 'namespace of the consumer cluster')
      .addOption(changingKubeconfigOption())
      .addOption(contextOption())
      .addOption(
        new Option('--pod-offloading-strategy <strategy>', 'where its pods may run')
          .choices(PodOffloadingStrategy.options)
          .default('LocalAndRemote'),
      )
      .addOption(
        new Option('--strategy <strategy>', 'short for --pod-offloading-strategy').choices(
          PodOffloadingStrategy.options,
        ),
      )
      .addOption(
        new Option(
          '--namespace-mapping-strategy <strategy>',
          'its name at the provider: NAMESPACE-CONSUMER, the same, or --remote-namespace-name',
        )
          .choices(NamespaceMappingStrategy.options)
          .default('DefaultName'),
      )
      .addOption(
        new Option('--mapping <strategy>', 'short for --namespace-mapping-strategy').choices(
          NamespaceMappingStrategy.options,
        ),
      )
      .option('--remote-namespace-name <name>', 'its name at the provider; means the mapping SelectedName')
      .option(
        '-l, --selector <selector>',
        'only providers whose node has these labels; repeated: any of them',
        collect,
        [],
      )
      .addOption(timeoutOption('1m'))
      .addOption(manifestOption())
      .addHelpText(
        'after',
        `
Refused for system namespaces and for a namespace that is offloaded already.

Examples:
  isthmus offload namespace demo --kubeconfig rome.kubeconfig
  isthmus offload namespace demo --kubeconfig rome.kubeconfig --strategy Remote --mapping EnforceSameName`,
      )
      .action((name: string, options: OffloadOptions) => offload(io, name, options)),
  );

function specOf(options: OffloadOptions): NamespaceOffloadingSpec {
  const chosen = options.remoteNamespaceName;
  const mapping =
    options.mapping ??
    (chosen && options.namespaceMappingStrategy === 'DefaultName' ? 'SelectedName' : options.namespaceMappingStrategy);
  if ((mapping === 'SelectedName') !== (chosen !== undefined)) {
    throw new AppError(
      'invalid_input',
      `the mapping is ${mapping} and --remote-namespace-name ${chosen === undefined ? 'is missing' : `is ${chosen}`}; the name goes with SelectedName and only with it`,
      { detail: { field: 'remote-namespace-name', value: chosen } },
    );
  }
  const problem = chosen === undefined ? undefined : remoteNamespaceProblem(chosen);
  if (problem !== undefined) {
    throw new AppError('invalid_input', `the remote namespace name ${problem}`, {
      detail: { field: 'remote-namespace-name', value: chosen },
    });
  }
  const selector = clusterSelector(options.selector);
  return {
    podOffloadingStrategy: options.strategy ?? options.podOffloadingStrategy,
    namespaceMappingStrategy: mapping,
    ...(chosen !== undefined && { remoteNamespaceName: chosen }),
    ...(selector !== undefined && { clusterSelector: selector }),
  };
}

async function refuseUnusable(kube: KubeClient, name: string): Promise<void> {
  const syntax = namespaceNameProblem(name);
  if (syntax !== undefined) {
    throw new AppError('invalid_input', `the namespace ${syntax}`, { detail: { field: 'namespace', value: name } });
  }
  const reserved = () =>
    new AppError('namespace_reserved', `${name} is a system namespace`, {
      detail: { field: 'namespace', value: name },
    });
  if (isSystemNamespace(name)) throw reserved();
  const namespace = await kube.get(namespaces, { name });
  if (namespace === undefined) {
    throw new AppError('namespace_unknown', `there is no namespace ${name} in the cluster at ${kube.server}`, {
      detail: {
        field: 'namespace',
        value: name,
        remedy: `create it with \`kubectl create namespace ${name}\`, or correct the name`,
      },
    });
  }
  if (isSystemNamespace(name, namespace.metadata.labels)) throw reserved();
}

async function offload(io: CliIo, name: string, options: OffloadOptions): Promise<void> {
  const spec = specOf(options);
  const kube = await openCluster(options, io);
  await refuseUnusable(kube, name);
  const ref = { namespace: name, name: namespaceOffloadingName };
  const wanted: NamespaceOffloading = {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'NamespaceOffloading',
    metadata: ref,
    spec,
  };
  if (options.output !== undefined) return printObject(io, options.output, wanted);
  try {
    await kube.create<NamespaceOffloading>(namespaceOffloadings, wanted);
  } catch (error) {
    if (codeOf(error) === 'kube_not_found') throw notJoined(kube, error);
    if (codeOf(error) !== 'kube_already_exists') throw error;
    throw twice(name, await kube.get(namespaceOffloadings, ref), spec);
  }
  const timeoutMs = timeoutMsOf(options);
  const ended = await during(createProgress(io), `offloading namespace ${name}`, (step) =>
    settle(io, kube, name, timeoutMs, step),
  );
  const status = ended.status ?? {};
  if (status.offloadingPhase === 'NoClusterSelected') {
    io.stdout.write(`namespace ${name} is offloaded, but to no provider yet\n`);
    io.stderr.write(
      options.selector.length > 0
        ? 'no virtual node has the selected labels; see them with `kubectl get nodes --show-labels`\n'
        : 'this cluster has no virtual node; peer it with `isthmus peer CONSUMER PROVIDER --wait`\n',
    );
    return;
  }
  const providers = Object.keys(status.remoteNamespacesConditions ?? {}).join(', ');
  io.stdout.write(
    `namespace ${name} is offloaded${providers ? ` to ${providers}` : ''} as ${status.remoteNamespaceName ?? name}\n`,
  );
}

const notJoined = (kube: KubeClient, cause: unknown): AppError =>
  new AppError('cluster_unknown', `the cluster at ${kube.server} has not joined: it knows no NamespaceOffloading`, {
    cause,
    detail: { remedy: 'run `isthmus join NAME --kubeconfig FILE` first' },
  });

function twice(name: string, existing: NamespaceOffloading | undefined, wanted: NamespaceOffloadingSpec): AppError {
  const now: Readonly<Record<string, unknown>> = existing?.spec ?? {};
  const differing = Object.entries({ remoteNamespaceName: undefined, clusterSelector: undefined, ...wanted })
    .filter(([field, value]) => !isDeepStrictEqual(plain(now[field]), plain(value)))
    .map(
      ([field, value]) =>
        `${field} is ${JSON.stringify(now[field]) ?? 'not set'}, asked for ${JSON.stringify(value) ?? 'none'}`,
    );
  return new AppError(
    'already_exists',
    differing.length === 0
      ? `namespace ${name} is offloaded already, exactly like this; nothing was changed`
      : `namespace ${name} is offloaded already, differently: ${differing.join('; ')}; nothing was changed`,
    {
      detail: {
        field: 'namespace',
        value: name,
        remedy:
          differing.length === 0
            ? `nothing; see it with \`kubectl -n ${name} get namespaceoffloading\``
            : `end it first with \`isthmus unoffload namespace ${name} --kubeconfig FILE\``,
      },
    },
  );
}

const plain = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

const settledPhases = ['Ready', 'NoClusterSelected', 'SomeFailed', 'AllFailed'];

async function settle(
  io: CliIo,
  kube: KubeClient,
  name: string,
  timeoutMs: number,
  step: Step,
): Promise<NamespaceOffloading> {
  const ref = { namespace: name, name: namespaceOffloadingName };
  let news = 'the agent has not looked at it';
  const ended = await poll(
    io,
    timeoutMs,
    () =>
      orLater(async () => {
        const object = await kube.get(namespaceOffloadings, ref);
        const current =
          object?.status?.observedGeneration === undefined ||
          object.status.observedGeneration >= (object.metadata.generation ?? 0);
        const phase = object?.status?.offloadingPhase;
        if (phase !== undefined) news = [phase, ...failures(object)].join(', ');
        step.update(news);
        return object && current && phase !== undefined && settledPhases.includes(phase) ? object : undefined;
      }),
    () =>
      new AppError('deadline_exceeded', `namespace ${name} is not offloaded yet: ${news}`, {
        detail: {
          remedy: `see \`kubectl -n ${name} describe namespaceoffloading ${namespaceOffloadingName}\`; it goes on without this command`,
        },
      }),
  );
  const phase = ended.status?.offloadingPhase;
  if (phase === 'SomeFailed' || phase === 'AllFailed') {
    throw new AppError(
      'command_failed',
      `namespace ${name} cannot be offloaded: ${failures(ended).join('; ') || phase}`,
      {
        detail: {
          remedy: `choose another name at the provider, or correct what the message names; see \`kubectl -n ${name} describe namespaceoffloading\``,
        },
      },
    );
  }
  return ended;
}

const failures = (object: NamespaceOffloading | undefined): string[] =>
  Object.entries(object?.status?.remoteNamespacesConditions ?? {}).flatMap(([provider, conditions]) =>
    conditions
      .filter(({ type, status }) => type === 'Ready' && status === 'False')
      .map(({ reason, message }) => `${provider}: ${[reason, message].filter(Boolean).join(', ')}`),
  );

export const unoffloadCommand = (io: CliIo): Command =>
  new Command('unoffload').addCommand(
    new Command('namespace')
      .alias('ns')
      .description('remove a namespace from the providers; its pods there end')
      .argument('<namespace>', 'namespace of the consumer cluster')
      .addOption(changingKubeconfigOption())
      .addOption(contextOption())
      .addOption(timeoutOption('2m'))
      .action((name: string, options: { kubeconfig: string; context?: string; timeout: string }) =>
        unoffload(io, name, options),
      ),
  );

async function unoffload(
  io: CliIo,
  name: string,
  options: { readonly kubeconfig: string; readonly context?: string; readonly timeout: string },
): Promise<void> {
  const kube = await openCluster(options, io);
  const ref = { namespace: name, name: namespaceOffloadingName };
  io.stderr.write(
    await noticeOr(
      async () =>
        keptNotice(await remoteVolumes(kube, ({ claim }) => claim.startsWith(`${name}/`))) +
        (await keptSnapshotsNotice(kube, ({ snapshot }) => snapshot.startsWith(`${name}/`))),
      `which claims and snapshots of namespace ${name} have data at providers`,
    ),
  );
  if (!(await kube.delete(namespaceOffloadings, ref))) {
    io.stdout.write(`namespace ${name} is not offloaded; nothing to do\n`);
    return;
  }
  await during(createProgress(io), `unoffloading namespace ${name}`, (step) =>
    poll(
      io,
      timeoutMsOf(options),
      () =>
        orLater(async () => {
          const object = await kube.get(namespaceOffloadings, ref);
          if (object === undefined) return true;
          const remote = Object.keys(object.status?.remoteNamespacesConditions ?? {});
          step.update(remote.length > 0 ? `waiting for ${remote.join(', ')} to remove the remote namespace` : 'almost');
          return undefined;
        }),
      () =>
        new AppError('deadline_exceeded', `namespace ${name} is still being removed at its providers`, {
          detail: {
            remedy: `see \`kubectl -n ${name} describe namespaceoffloading ${namespaceOffloadingName}\`; it goes on without this command`,
          },
        }),
    ),
  );
  io.stdout.write(`namespace ${name} is no longer offloaded\n`);
}
