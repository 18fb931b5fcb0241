/** The demo on two clusters that exist: only the broker runs here. */
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { openBroker } from '#test/harness/product-clusters.ts';
import { must } from '#test/harness/program.ts';
import { buildKubebox } from '#test/testbed/build.ts';
import { brokerAddressFor } from './broker-address.ts';
import type { Stage } from './main.ts';
import { home, namespace, workloadIn, workloadOfAgent } from './workload.ts';

export interface ExistingOptions {
  readonly root: string;
  /** Two files, separated by a comma: consumer, then provider. Their base names become the clusters' names. */
  readonly kubeconfigs: string;
  readonly image: string | undefined;
  /** Default: the address from which this machine reaches both API servers. */
  readonly brokerAddress: string | undefined;
  /** Of an image that takes the words of test/testbed/workload; default: pods from the agent's image. */
  readonly workloadImage: string | undefined;
  readonly usage: string;
}

const brokerPort = 7443;

export async function openExisting(options: ExistingOptions): Promise<Stage> {
  const files = options.kubeconfigs.split(',').map((file) => path.resolve(file.trim()));
  const missing = files.find((file) => !existsSync(file));
  const refuse = (message: string) => new AppError('invalid_input', `${message}\n\n${options.usage}`);
  const [consumerFile, providerFile] = files;
  if (files.length !== 2 || !consumerFile || !providerFile)
    throw refuse(`--kubeconfigs is ${options.kubeconfigs}, accepted are two files separated by a comma`);
  if (missing !== undefined) throw refuse(`--kubeconfigs names ${missing}, which does not exist`);
  const nameOf = (file: string) =>
    path
      .basename(file)
      .replace(/\..*$/, '')
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]/g, '-');
  const byName = new Map([
    [nameOf(consumerFile), consumerFile],
    [nameOf(providerFile), providerFile],
  ]);
  if (byName.size !== 2)
    throw refuse('--kubeconfigs names two files of one base name; the base names become the names of the clusters');
  const kubeconfigPath = (name: string) => byName.get(name) ?? '';
  const { image } = options;
  if (image === undefined)
    throw refuse(
      '--image is missing: where both clusters can pull the agent image (`npm run image -- --save FILE` writes it as a tar)',
    );
  const listen = options.brokerAddress ?? (await brokerAddressFor(files, brokerPort));
  console.log(`           the broker listens on ${listen}`);
  const state = path.join(options.root, '.testbed', 'world');
  mkdirSync(state, { recursive: true });
  const { mustIsthmus } = await openBroker({ root: options.root, state, listen });
  const kubectl = await buildKubebox({ cache: cacheDir(), log: (line) => console.log(line) });
  const kubectlLink = path.join(state, 'kubectl');
  if (!existsSync(kubectlLink)) copyFileSync(kubectl, kubectlLink);
  return {
    consumer: nameOf(consumerFile),
    provider: nameOf(providerFile),
    workload: options.workloadImage === undefined ? workloadOfAgent(image) : workloadIn(options.workloadImage),
    brokerUrl: `https://${listen}`,
    mustIsthmus,
    kubectlFolder: state,
    removal: [
      `kubectl delete namespace ${namespace} ${home}`,
      ...[...byName].map(([name, file]) => `npx isthmus leave ${name} --kubeconfig ${file} --force --purge`),
      'npm run demo -- --down',
    ],
    kubeconfigPath,
    kubectl: async (name, ...args) =>
      (await must(kubectlLink, [`--kubeconfig=${kubeconfigPath(name)}`, ...args])).stdout,
    join: async (name) => {
      await mustIsthmus('join', name, '--kubeconfig', kubeconfigPath(name), '--image', image);
    },
  };
}
