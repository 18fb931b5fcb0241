/** isthmus status: one cluster at a glance, with its kubeconfig alone. */
import { Command, Option } from 'commander';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { retryReads } from '#cli/cluster/retry.ts';
import type { CliIo } from '#cli/output/io.ts';
import { printObject } from '#cli/output/print.ts';
import { readObjects } from '#cli/status/read.ts';
import { type ClusterStatus, summarize } from '#cli/status/summary.ts';
import { statusText } from '#cli/status/text.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { contextOption, kubeconfigOption } from './kubeconfig-option.ts';

interface StatusOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly watch?: boolean;
  readonly output: 'text' | 'json' | 'yaml';
}

const everyMs = 2_000;

export const statusCommand = (io: CliIo): Command =>
  new Command('status')
    .description('how a cluster and its peerings are, with its kubeconfig alone')
    .argument('[peer]', 'only this peer')
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .option('-w, --watch', 'print it again when it changes, until interrupted')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'yaml']).default('text'))
    .addHelpText('after', '\nExamples:\n  isthmus status --kubeconfig rome.kubeconfig\n  isthmus status milan --watch')
    .action(async (peer: string | undefined, options: StatusOptions) => {
      const kube = retryReads(io, await openCluster(options, io));
      let last = '';
      do {
        const status = await look(kube, peer);
        const text = JSON.stringify(status);
        if (text !== last) print(io, options, status);
        last = text;
        if (options.watch) await io.clock.sleep(everyMs, io.signal);
      } while (options.watch);
    });

function print(io: CliIo, { output, watch }: StatusOptions, status: ClusterStatus): void {
  if (output === 'text')
    io.stdout.write(`${watch ? `${new Date(io.clock.now()).toISOString()}\n` : ''}${statusText(status)}`);
  else printObject(io, output, status);
}

async function look(kube: KubeClient, peer: string | undefined): Promise<ClusterStatus> {
  const objects = await readObjects(kube);
  const status = summarize(objects, peer);
  if (status === undefined) {
    throw new AppError('not_found', `Isthmus is not installed in the cluster at ${kube.server}`, {
      detail: { remedy: 'install it with `isthmus install` or `isthmus join`' },
    });
  }
  if (peer !== undefined && status.peers.length === 0) {
    const known = objects.peers.map(({ spec }) => spec.clusterID).join(', ') || 'none';
    throw new AppError('not_found', `${status.clusterId} has no peer ${JSON.stringify(peer)}, there is: ${known}`, {
      detail: { field: 'peer', value: peer },
    });
  }
  return status;
}
