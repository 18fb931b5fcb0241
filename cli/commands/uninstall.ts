/** isthmus uninstall: takes the agent out of a cluster that has no peerings any more. */
import { Command } from 'commander';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { readCluster } from '#cli/install/cluster-state.ts';
import { isKept, leftText, ownObjects, printed } from '#cli/install/own-objects.ts';
import { remainingPeerings } from '#cli/install/remaining-peerings.ts';
import { removeIsthmus } from '#cli/install/remove.ts';
import { departureNotice } from '#cli/offload/kept-data.ts';
import type { CliIo } from '#cli/output/io.ts';
import { createProgress, during } from '#cli/output/progress.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { changingKubeconfigOption, contextOption } from './kubeconfig-option.ts';
import { dryRunOption, timeoutMsOf, timeoutOption } from './options.ts';

export interface UninstallOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly purge?: boolean;
  readonly dryRun?: boolean;
  readonly timeout: string;
}

export const uninstallCommand = (io: CliIo): Command =>
  new Command('uninstall')
    .addOption(changingKubeconfigOption())
    .addOption(contextOption())
    .option('--purge', 'also remove the tenant namespaces and the custom resource definitions')
    .addOption(dryRunOption())
    .addOption(timeoutOption('2m'))
    .addHelpText(
      'after',
      `
Refused while the cluster has peerings or offloaded namespaces; it says which. The agent is stopped first, then what it and the
installation made is removed, then the cluster is looked through for what is left. Interrupted, it goes on when run again.`,
    )
    .action(async (options: UninstallOptions) => uninstall(io, await openCluster(options, io), options));

export async function uninstall(io: CliIo, kube: KubeClient, options: UninstallOptions): Promise<void> {
  const progress = createProgress(io);
  const purge = options.purge === true;
  const { clusterId, link } = await readCluster(kube);
  const found = await ownObjects(io, kube, purge);
  if (options.dryRun) io.stdout.write(found.length === 0 ? '' : printed(found));
  if (found.every(isKept)) {
    io.stdout.write(`Isthmus is not installed in namespace ${systemNamespace} of this cluster; nothing to remove\n`);
    return;
  }
  if (link !== undefined) {
    throw new AppError('in_use', `this cluster is connected to the broker ${link.spec.url} as ${link.spec.clusterId}`, {
      detail: { remedy: `let it leave: isthmus leave ${link.spec.clusterId} --kubeconfig ${options.kubeconfig}` },
    });
  }
  await during(progress, 'peerings', () => refuseWhilePeered(io, kube));
  io.stderr.write(await departureNotice(kube));
  if (options.dryRun) return;
  const kept = await removeIsthmus(io, progress, kube, { purge, timeoutMs: timeoutMsOf(options) });
  io.stdout.write(`Isthmus is removed from cluster ${clusterId ?? kube.server}\n${leftText(kept)}`);
}

const shown = 10;

async function refuseWhilePeered(io: CliIo, kube: KubeClient): Promise<void> {
  const { peers, objects } = await remainingPeerings(io, kube);
  if (peers.length === 0 && objects.length === 0) return;
  const rest = objects.length > shown ? ` and ${objects.length - shown} more` : '';
  const parts = [
    ...(peers.length === 0 ? [] : [`it is peered with ${peers.join(', ')}`]),
    ...(objects.length === 0 ? [] : [`these objects are left: ${objects.slice(0, shown).join(', ')}${rest}`]),
  ];
  throw new AppError('in_use', `Isthmus cannot be removed: ${parts.join('; ')}`, {
    detail: {
      remedy:
        'end each peering first the way it was made: take its manifests away on both sides, or `liqoctl unpeer`; then repeat',
    },
  });
}
