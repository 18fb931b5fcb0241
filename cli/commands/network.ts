/** isthmus network test: the whole matrix between two clusters, and where packets end. */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { KubeTarget } from '#cli/cluster/kubeconfig-files.ts';
import { openCluster } from '#cli/cluster/open.ts';
import { halfOf, testHomeHalf } from '#cli/network-test/home-half.ts';
import { reportText } from '#cli/network-test/print.ts';
import { type Report, testNetwork } from '#cli/network-test/run.ts';
import { mustBeCluster, readSide } from '#cli/network-test/side.ts';
import { removeTest } from '#cli/network-test/test-pods.ts';
import type { CliIo } from '#cli/output/io.ts';
import { createProgress, during, type Progress } from '#cli/output/progress.ts';
import { paintFor } from '#cli/output/style.ts';
import { parseAddress } from '#shared/domain/cidr.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { announceCluster, kubeconfigOption } from './kubeconfig-option.ts';
import { clusterName, timeoutMsOf, timeoutOption } from './options.ts';

interface NetworkTestOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly peerKubeconfig: string;
  readonly peerContext?: string;
  readonly basic?: boolean;
  readonly nodePort?: boolean;
  readonly externalIp?: { readonly ip: string; readonly port: number };
  readonly rmOnly?: boolean;
  readonly output: 'text' | 'json';
  readonly timeout: string;
}

function addressAndPort(text: string): { readonly ip: string; readonly port: number } {
  const [, ip = '', port = ''] = /^([\d.]+):(\d{1,5})$/.exec(text) ?? [];
  if (parseAddress(ip) !== undefined && Number(port) >= 1 && Number(port) <= 65_535) return { ip, port: Number(port) };
  throw new InvalidArgumentError('Accepted is IP:PORT, for example 192.0.2.7:80.');
}

export const networkCommand = (io: CliIo): Command =>
  new Command('network').addCommand(
    new Command('test')
      .description('call every node and pod network of each cluster from the other, and name the hop that fails')
      .argument('<consumer>', 'cluster that has the node', clusterName)
      .argument('<provider>', 'cluster that runs the pods', clusterName)
      .addOption(kubeconfigOption({ of: 'the consumer' }))
      .option('--context <name>', 'context in it (default: the current one)')
      .requiredOption('--peer-kubeconfig <file>', 'kubeconfig of the provider')
      .option('--peer-context <name>', 'context in it (default: the current one)')
      .option('--basic', 'pods to pods only')
      .option('--node-port', 'NodePorts too, called from pods and from this machine')
      .option(
        '--external-ip <ip:port>',
        'an HTTP server outside, called through an IP object of either cluster',
        addressAndPort,
      )
      .option('--rm-only', 'remove what an earlier test left, and test nothing')
      .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
      .addOption(timeoutOption('2m'))
      .addHelpText(
        'after',
        `
Puts one pod into the pods' network and one into the node's network on every node, from the agent's own image, in namespace
isthmus-network-test, which is removed at the end, also after Ctrl-C. Asks no broker. Fails with exit code 7 when a probe fails.
Where one of the two clusters runs Liqo, nothing is put into it: the half of the other is tested, and the link as both say it is.`,
      )
      .action((consumer: string, provider: string, options: NetworkTestOptions) =>
        networkTest(io, [consumer, provider], options),
      ),
  );

async function networkTest(
  io: CliIo,
  [consumer, provider]: readonly [string, string],
  options: NetworkTestOptions,
): Promise<void> {
  if (consumer === provider) {
    throw new AppError('invalid_input', `consumer and provider are both ${consumer}: accepted are two clusters`, {
      detail: { field: 'provider', value: provider },
    });
  }
  const progress = createProgress(io);
  const targets = [
    { kubeconfig: options.kubeconfig, context: options.context },
    { kubeconfig: options.peerKubeconfig, context: options.peerContext },
  ] as const;
  await announceCluster(io, targets[0], targets[0].kubeconfig);
  await announceCluster(io, targets[1], targets[1].kubeconfig);
  const clusters = await during(progress, 'clusters', async () => {
    const opened = [await openCluster(targets[0], io), await openCluster(targets[1], io)] as const;
    await mustBeCluster(opened[0], consumer, '--kubeconfig');
    await mustBeCluster(opened[1], provider, '--peer-kubeconfig');
    return opened;
  });
  // What a killed test left would be mistaken for this one's.
  const removed = await removeAll(io, progress, targets, options.rmOnly ? 'removing' : 'leftovers of an earlier test');
  if (options.rmOnly) {
    io.stdout.write(removed ? 'removed\n' : 'nothing to remove\n');
    return;
  }
  const report = await cleanly(
    async () => {
      const grounds = [
        { target: targets[0], kube: clusters[0], side: await readSide(clusters[0], consumer, provider) },
        { target: targets[1], kube: clusters[1], side: await readSide(clusters[1], provider, consumer) },
      ] as const;
      const { basic = false, nodePort = false, externalIp: external } = options;
      const requested = { basic, nodePort, timeoutMs: timeoutMsOf(options), ...(external && { external }) };
      const outside = { clock: io.clock, progress, signal: io.signal };
      const halved = halfOf(grounds);
      return halved ? testHomeHalf(halved, requested, outside) : testNetwork(grounds, requested, outside);
    },
    () => removeAll(io, progress, targets, 'removing the test'),
  );
  if (options.output === 'json') io.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else io.stdout.write(reportText(report, paintFor(io.stdout, io.env)));
  validateOptions(report);
}

/** `after` runs on every path; the first failure counts. */
async function cleanly<T>(work: () => Promise<T>, after: () => Promise<unknown>): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    await after().catch(() => undefined);
    throw error;
  }
  await after();
  return result;
}

const removeAll = (io: CliIo, progress: Progress, targets: readonly KubeTarget[], title: string): Promise<boolean> =>
  during(progress, title, async () =>
    (await Promise.all(targets.map((target) => removeTest(target, io.clock)))).includes(true),
  );

function validateOptions({ rows, missing }: Report): void {
  const failed = rows.filter(({ ok }) => !ok);
  const [first] = failed;
  if (first?.failing !== undefined) {
    const { hop, at, todo } = first.failing;
    throw new AppError(
      'network_test_failed',
      `${failed.length} of ${rows.length} probes failed, the first one at: ${hop} (${at})`,
      {
        detail: { remedy: todo },
      },
    );
  }
  if (missing.length > 0) {
    throw new AppError('network_test_failed', `not every node could be tested: ${missing.join('; ')}`, {
      detail: { remedy: 'look at the pods of those nodes' },
    });
  }
}
