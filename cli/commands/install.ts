/** isthmus install: the agent without a broker. Peerings come from manifests or liqoctl. */
import { readFile } from 'node:fs/promises';
import { Command, Option } from 'commander';
import * as yaml from 'yaml';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { retryReads } from '#cli/cluster/retry.ts';
import { installAgent, manifestsFor } from '#cli/install/install-agent.ts';
import { settleStorage } from '#cli/install/settle-storage.ts';
import { flagsOf, type InstallValues, parseValues, withSettings } from '#cli/install/values.ts';
import type { CliIo } from '#cli/output/io.ts';
import { printManifests } from '#cli/output/print.ts';
import { createProgress } from '#cli/output/progress.ts';
import { preflight } from '#cli/preflight/preflight.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { InstallFlags } from '../install/install-flags.ts';
import { installOptions } from './install-options.ts';
import { clusterName, collect, timeoutMsOf } from './options.ts';

export type InstallOptions = InstallFlags & { readonly clusterId: string };

type Asked = Omit<InstallOptions, 'clusterId'> & {
  readonly clusterId?: string;
  readonly values: readonly string[];
  readonly set: readonly string[];
};

export const installCommand = (io: CliIo): Command =>
  installOptions(
    new Command('install').option('--cluster-id <id>', 'name of the cluster, by which peers know it', clusterName),
  )
    .addOption(
      new Option(
        '--values <file>',
        'YAML with what the options say (docs/platforms.md); options go before it; may be repeated',
      )
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option('--set <name=value>', 'one such value, over those of files; may be repeated')
        .argParser(collect)
        .default([], 'none'),
    )
    .addHelpText(
      'after',
      `
Needs administrator rights in the cluster and nothing else: no login, no broker. Peer it by manifests (isthmus generate peering) or with
liqoctl. It may join a broker later: isthmus join ID. Running it again updates the agent and repairs what is missing.

Example:
  isthmus install --kubeconfig rome.kubeconfig --cluster-id rome`,
    )
    .action(async (asked: Asked, command: Command) => {
      const options = await withValues(asked, (name) => command.getOptionValueSource(name) === 'default');
      await install(io, await openCluster(options, io), options);
    });

/** Files in their order, then `--set`, then options. Fails with `invalid_input` naming file and field. */
async function withValues(
  { values: files, set, ...asked }: Asked,
  isDefault: (name: string) => boolean,
): Promise<InstallOptions> {
  let values: unknown = {};
  for (const file of files) values = merged(values, await readValues(file));
  const said = flagsOf(parseValues(withSettings(values, set), '--set'));
  const given = Object.entries(asked).filter(
    ([name, value]) => value !== undefined && !(name in said && isDefault(name)),
  );
  const options = { ...said, ...Object.fromEntries(given) } as Omit<InstallOptions, 'clusterId'> & {
    clusterId?: string;
  };
  const { clusterId } = options;
  if (clusterId === undefined) {
    throw new AppError('invalid_input', 'the name of the cluster is missing', {
      detail: { field: 'cluster-id', remedy: 'say it with --cluster-id NAME, or as clusterId in --values' },
    });
  }
  return { ...options, clusterId };
}

async function readValues(file: string): Promise<InstallValues> {
  try {
    return parseValues(yaml.parse(await readFile(file, 'utf8')), file);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('invalid_input', `--values ${file} cannot be read: ${(error as Error).message}`, {
      cause: error,
      detail: { field: 'values', value: file, remedy: 'name a YAML file' },
    });
  }
}

/** Later files go before earlier ones, value by value. */
const merged = (before: unknown, { network, ...values }: InstallValues): unknown => ({
  ...(before as InstallValues),
  ...values,
  ...(network !== undefined && { network: { ...(before as InstallValues).network, ...network } }),
});

export async function install(io: CliIo, client: KubeClient, options: InstallOptions): Promise<void> {
  const kube = retryReads(io, client);
  const { clusterId } = options;
  const progress = createProgress(io);
  const deadline = io.clock.now() + timeoutMsOf(options);
  const { apiServerUrl, state, network, platform, profile } = await preflight(io, progress, kube, options, {
    clusterId,
    remedy: (known) =>
      `update it with --cluster-id ${known}, or remove it first with \`isthmus uninstall --kubeconfig ${options.kubeconfig}\``,
  });
  if (state.link !== undefined) progress.note(`keeps its broker ${state.link.spec.url}`);
  const { joinStamp } = state;
  const storage = await settleStorage(kube, options);
  const installation = { clusterId, apiServerUrl, state, network, storage, platform, profile, joinStamp, deadline };
  if (options.output !== undefined) {
    printManifests(io, options.output, manifestsFor(options, installation).manifests);
    return;
  }
  await installAgent(io, progress, kube, options, installation);
  io.stdout.write(`cluster ${clusterId} is ready to peer, API server for peers ${apiServerUrl}\n`);
}
