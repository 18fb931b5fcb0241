/** isthmus requests rule: which requests of other tenants are approved without anybody looking. */
import { Command } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import { resourcesText } from '#cli/peerings/describe.ts';
import {
  askedResources,
  collect,
  labelList,
  outputOption,
  positiveInt,
  type ResourceOptions,
  resourceOptions,
} from './options.ts';

export const ruleCommand = (io: CliIo): Command =>
  new Command('rule')
    .description('which requests are approved without anybody looking')
    .addCommand(createCommand(io))
    .addCommand(listCommand(io))
    .addCommand(deleteCommand(io));

interface CreateOptions extends ResourceOptions {
  readonly tenant: string[];
  readonly labels: Record<string, string>;
  readonly class: string[];
  readonly uses?: number;
}

const createCommand = (io: CliIo): Command =>
  resourceOptions(new Command('create'), 'that a request must name and not exceed')
    .description('approve requests that match, from now on')
    .argument('<name>', 'what it is for')
    .requiredOption('--tenant <name>', 'tenant that may ask, * for all; may be repeated', collect, [])
    .option('--labels <labels>', 'only for published clusters with these labels, KEY=VALUE,…', labelList, {})
    .option('--class <name>', 'class that may be asked for, * for all; may be repeated; default: default', collect, [])
    .option('--uses <n>', 'how many requests it approves; default: 100', positiveInt)
    .action((name: string, options: CreateOptions) =>
      withBroker(io, async (broker) => {
        const rule = await broker.api.createApprovalRule({
          body: {
            name,
            tenants: options.tenant,
            labels: options.labels,
            maxResources: askedResources(options),
            ...(options.class.length > 0 && { classes: options.class }),
            ...(options.uses !== undefined && { uses: options.uses }),
          },
        });
        io.stdout.write(`rule ${rule.id} (${rule.name}) approves up to ${rule.uses} requests\n`);
      }),
    );

const listCommand = (io: CliIo): Command =>
  new Command('list')
    .description('list rules')
    .addOption(outputOption())
    .action(({ output }: { output: Format }) =>
      withBroker(io, async (broker) => {
        printListing(io, output, {
          items: await broker.all((page) => broker.api.listApprovalRules({ query: page })),
          columns: [
            { head: 'id', cell: ({ id }) => id },
            { head: 'name', cell: ({ name }) => name },
            { head: 'tenants', cell: ({ tenants }) => tenants.join(',') },
            { head: 'at most', cell: ({ maxResources }) => resourcesText(maxResources) || '-' },
            { head: 'classes', cell: ({ classes }) => classes.join(',') },
            { head: 'used', cell: ({ used, uses }) => `${used}/${uses}` },
          ],
          name: ({ id }) => `approval-rule/${id}`,
          none: 'no rules: every request waits for a member',
        });
      }),
    );

const deleteCommand = (io: CliIo): Command =>
  new Command('delete')
    .description('delete a rule; what it approved stays approved')
    .argument('<id>', 'id of the rule, ar_…')
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const rule = await broker.api.deleteApprovalRule({ path: { rule: id } });
        io.stdout.write(`rule ${rule.id} (${rule.name}) is deleted\n`);
      }),
    );
