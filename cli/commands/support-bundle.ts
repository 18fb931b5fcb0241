/** isthmus support-bundle: one redacted archive to send to a helper. */
import { writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { Command } from 'commander';
import type { KubeTarget } from '#cli/cluster/kubeconfig-files.ts';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { decide } from '#cli/doctor/decide.ts';
import { lookAt } from '#cli/doctor/look.ts';
import { diagnosisOf } from '#cli/doctor/print.ts';
import type { CliIo } from '#cli/output/io.ts';
import { createProgress, during } from '#cli/output/progress.ts';
import { version } from '#cli/output/version.ts';
import { summarize } from '#cli/status/summary.ts';
import { archiveOf } from '#cli/support/archive.ts';
import { collect, found } from '#cli/support/collect.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { contextOption, kubeconfigOption } from './kubeconfig-option.ts';
import { timeoutMsOf, timeoutOption } from './options.ts';

interface Options {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly peerKubeconfig?: string;
  readonly peerContext?: string;
  readonly file?: string;
  readonly timeout: string;
}

export const supportBundleCommand = (io: CliIo): Command =>
  new Command('support-bundle')
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .option('--peer-kubeconfig <file>', 'kubeconfig of the other end, which goes into the same archive')
    .option('--peer-context <name>', 'context in it (default: the current one)')
    .option('--file <name>', 'file to write, which must not exist (default: isthmus-support-CLUSTER-TIME.tar.gz)')
    .addOption(timeoutOption('60s'))
    .addHelpText(
      'after',
      `
Secrets are never read. Environment, arguments, annotations, data and credentials are taken out of objects; keys, tokens and certificates out of
texts. Look at it before you pass it on: names of clusters, namespaces, nodes and pods, and addresses, are in it. docs/doctor.md says what else is.

Example:
  isthmus support-bundle --kubeconfig rome.kubeconfig --peer-kubeconfig milan.kubeconfig --file rome-milan.tar.gz`,
    )
    .action(async (options: Options) => {
      const { kubeconfig, context, peerKubeconfig, peerContext } = options;
      const targets: KubeTarget[] = [
        { kubeconfig, context },
        ...(peerKubeconfig === undefined ? [] : [{ kubeconfig: peerKubeconfig, context: peerContext }]),
      ];
      const bundle = await during(createProgress(io), 'collecting', () => bundleOf(io, targets, timeoutMsOf(options)));
      const time = new Date(io.clock.now()).toISOString().replaceAll(/[:.]/g, '-').slice(0, 19);
      const file = options.file ?? `isthmus-support-${bundle.cluster.replaceAll(/[^\w.-]/g, '_')}-${time}.tar.gz`;
      await write(file, gzipSync(bundle.tar));
      io.stdout.write(`${file}\n`);
      for (const note of bundle.notes) io.stderr.write(`not in it: ${note}\n`);
    });

async function bundleOf(
  io: CliIo,
  targets: readonly KubeTarget[],
  withinMs: number,
): Promise<{ readonly cluster: string; readonly tar: Buffer; readonly notes: readonly string[] }> {
  const clusters = await Promise.all(targets.map((target) => lookAt(io, target, withinMs)));
  const facts = { now: io.clock.now(), clusters };
  const signal = abortsWith(io.signal, AbortSignal.timeout(withinMs));
  const collected = await Promise.all(
    targets.map(async (target, at) => {
      const folder = clusters[at]?.facts === undefined ? `cluster-${at + 1}` : (clusters[at]?.cluster ?? '');
      // Only to be told apart: without an answer there is nothing to collect.
      if (clusters[at]?.silent !== undefined)
        return { files: [], notes: [`${folder}: its API server does not answer`] };
      const kube: KubeClient = await openCluster(target, { clock: io.clock, signal });
      return collect(kube, folder);
    }),
  );
  const versions = clusters.map(({ cluster, server, facts: one }) => ({
    cluster,
    server,
    kubernetes: one?.status.kubernetes,
    agent: one?.status.agent?.spec?.template.spec?.containers[0]?.image,
    nodes: one?.nodes.map(({ metadata, status }) => ({ name: metadata.name, ...status?.nodeInfo })),
  }));
  const notes = collected.flatMap((one) => one.notes);
  const { tar, cut } = archiveOf([
    found('versions.json', { isthmus: version, clusters: versions }),
    found('doctor.json', diagnosisOf(facts, decide(facts))),
    found(
      'status.json',
      clusters.flatMap((one) => (one.facts === undefined ? [] : [summarize(one.facts.status)])),
    ),
    found('not-in-it.json', notes),
    ...collected.flatMap(({ files }) => files),
  ]);
  return {
    cluster: clusters[0]?.facts === undefined ? 'unknown' : clusters[0].cluster,
    tar,
    notes: [...notes, ...cut],
  };
}

async function write(file: string, content: Buffer): Promise<void> {
  try {
    await writeFile(file, content, { mode: 0o600, flag: 'wx' });
  } catch (cause) {
    throw new AppError('invalid_input', `${file} cannot be written: ${(cause as Error).message}`, {
      cause,
      detail: { field: '--file', value: file, remedy: 'name a file that does not exist, in a folder that does' },
    });
  }
}
