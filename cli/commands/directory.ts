/** isthmus directory: clusters that tenants show to each other. */
import { Command } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import { labelsText, resourcesText } from '#cli/peerings/describe.ts';
import {
  askedResources,
  clusterName,
  collect,
  labelList,
  outputOption,
  type ResourceOptions,
  resourceOptions,
} from './options.ts';

export const directoryCommand = (io: CliIo): Command =>
  new Command('directory').addCommand(listCommand(io)).addCommand(publishCommand(io)).addCommand(unpublishCommand(io));

interface ListOptions {
  readonly output: Format;
  readonly region?: string;
  readonly labels: Record<string, string>;
  readonly class?: string;
  readonly mine?: boolean;
}

const listCommand = (io: CliIo): Command =>
  new Command('list')
    .description('published clusters of all tenants')
    .option('--region <name>', 'only those in this region')
    .option('--labels <labels>', 'only those with these labels, KEY=VALUE separated by commas', labelList, {})
    .option('--class <name>', 'only those that offer this class')
    .option('--mine', 'only your own')
    .addOption(outputOption())
    .action(({ output, region, labels, class: name, mine }: ListOptions) =>
      withBroker(io, async (broker) => {
        const query = { region, class: name, mine, labels: labelsText(labels) || undefined };
        printListing(io, output, {
          items: await broker.all((page) => broker.api.listDirectory({ query: { ...page, ...query } })),
          columns: [
            { head: 'cluster', cell: (entry) => `${entry.tenant}/${entry.cluster}` },
            { head: 'region', cell: (entry) => entry.region || '-' },
            { head: 'classes', cell: (entry) => entry.classes.join(',') },
            { head: 'capacity', cell: (entry) => resourcesText(entry.capacity) || '-' },
            { head: 'labels', cell: (entry) => labelsText(entry.labels) || '-' },
            { head: 'description', cell: (entry) => entry.description || '-' },
          ],
          name: ({ tenant, cluster }) => `${tenant}/${cluster}`,
          none: 'no published clusters',
        });
      }),
    );

interface PublishOptions extends ResourceOptions {
  readonly region?: string;
  readonly labels: Record<string, string>;
  readonly class: string[];
  readonly description?: string;
}

const publishCommand = (io: CliIo): Command =>
  resourceOptions(new Command('publish'), 'to show as a hint')
    .description('show a cluster of yours to all tenants, or replace its description; they may then ask for it')
    .argument('<cluster>', 'your cluster', clusterName)
    .option('--region <name>', 'where it is')
    .option('--labels <labels>', 'KEY=VALUE, more than one separated by commas', labelList, {})
    .option('--class <name>', 'resource class that it offers; may be repeated', collect, [])
    .option('--description <text>', 'what others should know')
    .addHelpText('after', '\nOthers see what you say here, the names of tenant and cluster, and nothing else.')
    .action((cluster: string, options: PublishOptions) =>
      withBroker(io, async (broker) => {
        const entry = await broker.api.publishCluster(
          {
            body: {
              cluster,
              labels: options.labels,
              capacity: askedResources(options),
              ...(options.region !== undefined && { region: options.region }),
              ...(options.class.length > 0 && { classes: options.class }),
              ...(options.description !== undefined && { description: options.description }),
            },
          },
          { repeatable: true },
        );
        io.stdout.write(`cluster ${entry.cluster} is published as ${entry.tenant}/${entry.cluster}\n`);
      }),
    );

const unpublishCommand = (io: CliIo): Command =>
  new Command('unpublish')
    .description('take a cluster of yours out of the directory; peerings stay')
    .argument('<cluster>', 'your cluster', clusterName)
    .action((cluster: string) =>
      withBroker(io, async (broker) => {
        const entry = await broker.api.unpublishCluster({ path: { cluster } });
        io.stdout.write(`cluster ${entry.cluster} is no longer published\n`);
      }),
    );
