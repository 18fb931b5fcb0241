/** The options that `join` and `install` share. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { metricsAccess } from '#cli/install/metrics-manifests.ts';
import { agentImage } from '#cli/output/version.ts';
import { profileNames } from '#cli/platform/profiles.ts';
import { checks } from '#cli/preflight/findings.ts';
import { credentialSettings, defaultCredentials } from '#shared/domain/credential-setting.ts';
import { nodeProcess } from '#shared/domain/network-keys.ts';
import { changingKubeconfigOption, contextOption } from './kubeconfig-option.ts';
import { collect, labelList, positiveInt, sharePercent, timeoutOption } from './options.ts';

const listOption = (flags: string, description: string, preset: string): Option =>
  new Option(flags, description).argParser(collect).default([], preset);

/** How peers reach the cluster, and its ranges: what is looked at and installed. */
export const rangeOptions = (command: Command): Command =>
  command
    .option('--api-server-url <url>', "how peers reach this cluster's API server (default: as in the kubeconfig)")
    .option('--no-network', 'install no network between clusters')
    .addOption(listOption('--pod-cidr <cidr>', 'range of the pods; may be repeated', 'found in the cluster'))
    .option('--service-cidr <cidr>', 'range of the Services (default: found in the cluster)')
    .option('--external-cidr <cidr>', 'range by which peers reach what is no pod (default: by the name of the cluster)')
    .option('--internal-cidr <cidr>', 'range of the addresses between nodes and gateways (default: 10.80.0.0/16)')
    .addOption(listOption('--reserved-subnet <cidr>', 'range that peers must never get here; may be repeated', 'none'));

export const checkOptions = (command: Command): Command =>
  command
    .addOption(
      new Option(
        '--credentials <kind>',
        `what consumers get: certificates, tokens, or what the agent finds that the cluster can give (default: what is installed, else ${defaultCredentials})`,
      ).choices(credentialSettings),
    )
    .addOption(
      new Option('--profile <name>', 'distribution of the cluster (default: by facts in it)').choices([
        ...profileNames,
      ]),
    )
    .addOption(
      new Option('--ignore-check <name>', 'go on although this check stops; may be repeated')
        .choices([...checks])
        .argParser(checkName)
        .default([], 'none'),
    );

/** Collects, and accepts the names of checks only. */
function checkName(text: string, before: readonly string[]): string[] {
  if ((checks as readonly string[]).includes(text)) return [...before, text];
  throw new InvalidArgumentError(`Accepted are ${checks.join(', ')}.`);
}

export const installOptions = (command: Command): Command =>
  checkOptions(
    rangeOptions(
      command
        .addOption(changingKubeconfigOption())
        .addOption(contextOption())
        .option('--image <ref>', `image of the agent (default: what is installed, else ${agentImage})`)
        .option('--replicas <n>', 'replicas of the agent (default: 2, or 1 with a single node)', positiveInt)
        .option('--labels <key=value,...>', 'labels of the cluster for its peers; may be repeated', labelList, {})
        .option(
          '--share-percent <n>',
          'most that all consumers together get, in percent of what the own pods of the cluster leave free (default: 90)',
          sharePercent,
        ),
    ),
  )
    .option(
      '--gateway-replicas <n>',
      'pods of each gateway, one active (default: 2, or 1 with a single node)',
      positiveInt,
    )
    .option('--full-masquerade', 'pods reach peers by the address of their node (default: as the CNI needs it)')
    .option('--no-storage', 'make no volumes for claims of a class of Isthmus')
    .option('--storage-class <name>', 'name of that class (default: what is installed, else liqo)')
    .option(
      '--capacity-storage-class <name>',
      'name of the other one, whose claims go only where there is room for them (default: what is installed, else isthmus)',
    )
    .option('--default-storage-class', 'claims that name no class get the one of --storage-class')
    .option(
      '--local-storage-class <name>',
      "class of their volumes in the cluster itself (default: the cluster's default class)",
    )
    .addOption(
      new Option(
        '--node-process <where>',
        'where the work of nodes is done (default: what is installed, else shared on a cluster of one node)',
      ).choices(Object.values(nodeProcess)),
    )
    .addOption(
      new Option(
        '--metrics [access]',
        'serve metrics on every process: authenticated (TLS, to tokens with the role isthmus-metrics-reader) or open (plain HTTP)',
      )
        .choices(metricsAccess)
        .preset('authenticated'),
    )
    .addOption(
      listOption(
        '--webhook-callers <cidr>',
        'range from which the API server calls the webhooks, to refuse all others by a NetworkPolicy; may be repeated',
        'what is installed, else open to all',
      ),
    )
    .option('--no-metrics', 'serve no metrics (default: what is installed, else none)')
    .option(
      '--no-rollback',
      'leave a new agent in place that does not become ready (default: the one before is put back)',
    )
    .addOption(
      new Option('-o, --output <format>', 'print what would be applied, and apply nothing').choices(['json', 'yaml']),
    )
    .addOption(timeoutOption('3m'));
