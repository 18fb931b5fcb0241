/** isthmus generate peering, isthmus generate peering-user, isthmus delete peering-user. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { openCluster } from '#cli/cluster/open.ts';
import { generatePeering, type PeeringOptions } from '#cli/gitops/generate-peering.ts';
import { createPeeringUser, deletePeeringUser } from '#cli/gitops/peering-user.ts';
import type { CliIo } from '#cli/output/io.ts';
import { changingKubeconfigOption, contextOption, kubeconfigOption } from './kubeconfig-option.ts';
import { clusterName, collect, lifetime, positiveInt, resourceOptions } from './options.ts';

function port(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= 65_535) return value;
  throw new InvalidArgumentError('Accepted are ports from 1 to 65535.');
}

export const generateCommand = (io: CliIo): Command =>
  new Command('generate').addCommand(peeringCommand(io)).addCommand(peeringUserCommand(io));

const peeringCommand = (io: CliIo): Command =>
  resourceOptions(
    new Command('peering')
      .description('write the manifests of both sides of a peering, for Git')
      .addOption(
        kubeconfigOption({
          flag: 'consumer',
          of: 'the cluster whose pods will run elsewhere',
          contextKey: 'consumerContext',
        }),
      )
      .requiredOption('--provider <file>', 'kubeconfig of the cluster that will run them')
      .option('--consumer-context <name>', 'context in the kubeconfig of the consumer')
      .option('--provider-context <name>', 'context in the kubeconfig of the provider')
      .option('--out <dir>', 'folder to write to; one folder for each cluster in it', '.')
      .option('--no-network', 'no network between the clusters')
      .addOption(
        new Option('--server <side>', 'which side listens').choices(['consumer', 'provider']).default('provider'),
      )
      .addOption(
        new Option('--server-type <type>', 'how it is reached')
          .choices(['NodePort', 'LoadBalancer'])
          .default('NodePort'),
      )
      .option(
        '--server-address <address>',
        'where the other side dials; may be repeated (default: its nodes)',
        collect,
        [],
      )
      .option('--node-port <port>', 'UDP port at the nodes, with NodePort', port, 30_742)
      .option('--load-balancer-ip <address>', 'address to ask the load balancer for')
      .option('--mtu <bytes>', 'of the tunnel', positiveInt, 1_340)
      .option(
        '--slice <name>',
        'name of the ResourceSlice and of the virtual node (default: the provider)',
        clusterName,
      )
      .option('--class <name>', 'class of the resources', 'default')
      .option('--lifetime <duration>', "how long the consumer's credentials are valid", lifetime, 365 * 86_400)
      .option('--seal-consumer <certificate>', "seal the consumer's Secrets to this sealed-secrets certificate")
      .option('--seal-provider <certificate>', "the same for the provider's"),
    'to ask for',
  )
    .addHelpText(
      'after',
      `
Reads both clusters and writes DIR/CONSUMER and DIR/PROVIDER, each with peering.yaml, secrets.yaml and kustomization.yaml. Private keys are
made here; the provider's own signer certifies the consumer, and nothing else is changed in either cluster. Apply each folder to its cluster,
in any order; delete it to end the peering. Unsealed Secrets do not belong in Git: use --seal-…, or keep secrets.yaml elsewhere.

Example:
  isthmus generate peering --consumer rome.kubeconfig --provider milan.kubeconfig --cpu 20 --memory 128Gi --out clusters`,
    )
    .action((options: PeeringOptions) => generatePeering(io, options));

interface UserOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly lifetime: number;
}

const peeringUserCommand = (io: CliIo): Command =>
  new Command('peering-user')
    .description('let the administrator of one consumer peer with this provider, and nothing else')
    .argument('<consumer>', 'cluster ID of the consumer', clusterName)
    .addOption(changingKubeconfigOption())
    .addOption(contextOption())
    .option('--lifetime <duration>', 'how long the credentials are valid', lifetime, 86_400)
    .addHelpText(
      'after',
      `
Prints a kubeconfig for \`liqoctl peer --remote-kubeconfig\`. It is kept nowhere: make another if it is lost. It works in the tenant namespace
of this one consumer, until \`isthmus delete peering-user\` or its end.

Example:
  isthmus generate peering-user rome --kubeconfig milan.kubeconfig > rome-at-milan.kubeconfig`,
    )
    .action(async (consumer: string, options: UserOptions) => {
      const kube = await openCluster(options, io);
      const text = await createPeeringUser(io, kube, consumer, options.lifetime);
      io.stdout.write(text);
      io.stderr.write(
        `take it back with: isthmus delete peering-user ${consumer} --kubeconfig ${options.kubeconfig}\n`,
      );
    });

export const deleteCommand = (io: CliIo): Command =>
  new Command('delete').addCommand(
    new Command('peering-user')
      .description('take the rights of a peering user back, at once')
      .argument('<consumer>', 'cluster ID of the consumer', clusterName)
      .addOption(changingKubeconfigOption())
      .addOption(contextOption())
      .action(async (consumer: string, options: Omit<UserOptions, 'lifetime'>) => {
        const kube = await openCluster(options, io);
        const removed = await deletePeeringUser(kube, consumer);
        io.stdout.write(
          removed ? `peering user of ${consumer} has no rights any more\n` : `${consumer} has no peering user here\n`,
        );
      }),
  );
