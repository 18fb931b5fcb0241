/** isthmus leave: the cluster is forgotten by the broker and, with a kubeconfig, freed of the agent. */
import { Command } from 'commander';
import { type BrokerClient, openBroker } from '#cli/broker/broker-client.ts';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { orUndefined, readCluster } from '#cli/install/cluster-state.ts';
import { leftText, ownObjects, printed } from '#cli/install/own-objects.ts';
import { removeIsthmus } from '#cli/install/remove.ts';
import { departureNotice } from '#cli/offload/kept-data.ts';
import type { CliIo } from '#cli/output/io.ts';
import { createProgress, during } from '#cli/output/progress.ts';
import { arrow } from '#cli/peerings/follow.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Peering } from '#shared/schema/api/resources.ts';
import { announceCluster, contextOption } from './kubeconfig-option.ts';
import { clusterName, dryRunOption, timeoutMsOf, timeoutOption } from './options.ts';
import { follow } from './peer.ts';

interface LeaveOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly force?: boolean;
  readonly purge?: boolean;
  readonly dryRun?: boolean;
  readonly timeout: string;
}

export const leaveCommand = (io: CliIo): Command =>
  new Command('leave')
    .argument('<name>', 'name of the cluster', clusterName)
    .option('--kubeconfig <file>', 'kubeconfig of the cluster; without it the agent stays, cut off')
    .addOption(contextOption())
    .option('--force', 'end its peerings first, in any state')
    .option('--purge', 'also remove tenant namespaces and custom resource definitions, with every object of theirs')
    .addOption(dryRunOption())
    .addOption(timeoutOption('2m'))
    .addHelpText(
      'after',
      `
Refused while the cluster has peerings, unless --force. With a kubeconfig the agent is stopped first, then what it and the installation made
is removed, then the cluster is looked through for what is left. Interrupted, it goes on when run again.`,
    )
    .action((name: string, options: LeaveOptions) => leave(io, name, options));

async function leave(io: CliIo, name: string, options: LeaveOptions): Promise<void> {
  const broker = await openBroker(io);
  try {
    const progress = createProgress(io);
    const { kubeconfig, context } = options;
    if (kubeconfig !== undefined) await announceCluster(io, { kubeconfig, context }, kubeconfig);
    const kube = kubeconfig === undefined ? undefined : await openCluster({ kubeconfig, context }, io);
    if (kube) await mustBe(kube, name);
    const open = await broker.all((page) => broker.api.listPeerings({ query: { ...page, cluster: name } }));
    if (options.dryRun) {
      const known = (await whatIsKnown(broker, name)) ? `cluster ${name}` : `no cluster ${name}`;
      io.stdout.write(`at the broker: ${[known, ...open.map((peering) => `peering ${arrow(peering)}`)].join(', ')}\n`);
      if (kube) io.stdout.write(printed(await ownObjects(io, kube, options.purge === true)));
    }
    if (open.length > 0 && !options.force) {
      throw new AppError('in_use', `${name} takes part in ${open.map(arrow).join(', ')}`, {
        detail: { remedy: 'unpeer first with `isthmus unpeer CONSUMER PROVIDER --wait`, or use --force' },
      });
    }
    if (kube) io.stderr.write(await departureNotice(kube));
    if (options.dryRun) return;
    for (const peering of open) await end(io, broker, peering, timeoutMsOf(options));
    const left = await during(progress, 'broker', () => forget(broker, name, options.force === true));
    const removal = { purge: options.purge === true, timeoutMs: timeoutMsOf(options) };
    const kept = kube && (await removeIsthmus(io, progress, kube, removal));
    io.stdout.write(
      left ? `cluster ${name} has left\n` : `the broker knows no cluster ${name}; nothing to forget there\n`,
    );
    if (kept) io.stdout.write(leftText(kept));
    if (!kube) io.stderr.write('its agent still runs; remove it with the same command and --kubeconfig FILE\n');
  } finally {
    broker.close();
  }
}

async function mustBe(kube: KubeClient, name: string): Promise<void> {
  const { clusterId: actual } = await readCluster(kube);
  if (actual === undefined || actual === name) return;
  throw new AppError('invalid_input', `the kubeconfig is that of cluster ${actual}, not of ${name}`, {
    detail: { field: 'kubeconfig', value: actual, remedy: `name the kubeconfig of ${name}` },
  });
}

/** With --force a dead side must not stop us: what it leaves behind is said. */
async function end(io: CliIo, broker: BrokerClient, peering: Peering, timeoutMs: number): Promise<void> {
  const ending = await broker.api.deletePeering({ path: { peering: peering.id } });
  try {
    const gone = await follow(io, broker, ending, { timeoutMs, until: 'Gone', events: false });
    for (const what of gone.leftBehind) io.stderr.write(`left behind: ${what}\n`);
  } catch (error) {
    if (codeOf(error) !== 'deadline_exceeded') throw error;
    io.stderr.write(`${(error as Error).message}; going on because of --force\n`);
  }
}

const whatIsKnown = (broker: BrokerClient, name: string): Promise<unknown> =>
  orUndefined(orUndefined(broker.api.getCluster({ path: { cluster: name } }), 'not_found'), 'cluster_unknown');

async function forget(broker: BrokerClient, name: string, force: boolean): Promise<boolean> {
  const left = await orUndefined(
    orUndefined(
      broker.api.deleteCluster({ path: { cluster: name }, query: { force: force || undefined } }),
      'not_found',
    ),
    'cluster_unknown',
  );
  return left !== undefined;
}
