/** isthmus install: the agent without a broker. Peerings come from manifests or liqoctl. */
import { Command } from 'commander';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { retryReads } from '#cli/cluster/retry.ts';
import { installAgent } from '#cli/install/install-agent.ts';
import type { CliIo } from '#cli/output/io.ts';
import { createProgress } from '#cli/output/progress.ts';
import { preflight } from '#cli/preflight/preflight.ts';
import type { InstallFlags } from '../install/install-flags.ts';
import { installOptions } from './install-options.ts';
import { clusterName, timeoutMsOf } from './options.ts';

export type InstallOptions = InstallFlags & { readonly clusterId: string };

export const installCommand = (io: CliIo): Command =>
  installOptions(
    new Command('install')
      .description('install or update the agent in a cluster that peers without a broker')
      .requiredOption('--cluster-id <id>', 'name of the cluster, by which peers know it', clusterName),
  )
    .addHelpText(
      'after',
      `
Needs administrator rights in the cluster and nothing else: no login, no broker. Peer it by manifests (isthmus generate peering) or with
liqoctl. It may join a broker later: isthmus join ID. Running it again updates the agent and repairs what is missing.

Example:
  isthmus install --kubeconfig rome.kubeconfig --cluster-id rome`,
    )
    .action(async (options: InstallOptions) => install(io, await openCluster(options, io), options));

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
  await installAgent(io, progress, kube, options, {
    clusterId,
    apiServerUrl,
    state,
    network,
    platform,
    profile,
    joinStamp,
    deadline,
  });
  io.stdout.write(`cluster ${clusterId} is ready to peer, API server for peers ${apiServerUrl}\n`);
}
