/** isthmus invite: lend a cluster of this tenant to another tenant, by a code. */
import { Command } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import { codeWith } from '#cli/lock/invitation-code.ts';
import { readLockKey } from '#cli/lock/lock-key.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import { paintFor, toneOf } from '#cli/output/style.ts';
import { resourcesText } from '#cli/peerings/describe.ts';
import {
  askedResources,
  clusterName,
  collect,
  lifetime,
  outputOption,
  positiveInt,
  type ResourceOptions,
  resourceOptions,
} from './options.ts';

export const inviteCommand = (io: CliIo): Command =>
  new Command('invite').addCommand(createCommand(io)).addCommand(listCommand(io)).addCommand(revokeCommand(io));

interface CreateOptions extends ResourceOptions {
  readonly class: string[];
  readonly expiresIn?: number;
  readonly uses?: number;
  readonly note?: string;
}

const createCommand = (io: CliIo): Command =>
  resourceOptions(new Command('create'), 'at most')
    .description('make an invitation; its code is printed once, on standard output')
    .argument('<cluster>', 'your cluster that runs the pods', clusterName)
    .option('--class <name>', 'resource class that may be asked for, * for all; may be repeated', collect, [])
    .option('--expires-in <duration>', 'for example 12h or 30d; default: 7d', lifetime)
    .option('--uses <n>', 'how many peerings it makes; default: 1', positiveInt)
    .option('--note <text>', 'a note that only your tenant sees')
    .addHelpText(
      'after',
      `
Possession of the code is enough to use it: send it as you would a password. What is not limited here is limited by the PeeringPolicy of the
cluster alone. The tenant that uses it runs: isthmus redeem CODE CLUSTER --kubeconfig FILE
Behind the first ~ the code has your lock key, by which the other cluster knows yours; the broker does not see that part.

Examples:
  isthmus invite create milan --cpu 4 --memory 8Gi --expires-in 2d
  isthmus invite create milan --resource nvidia.com/gpu=1 --class gpu --uses 5 --note 'spring workshop'`,
    )
    .action((cluster: string, options: CreateOptions) =>
      withBroker(io, async (broker) => {
        const { class: classes, expiresIn, uses, note } = options;
        const { invitation, code } = await broker.api.createInvitation({
          body: {
            cluster,
            limits: askedResources(options),
            ...(classes.length > 0 && { classes }),
            ...(expiresIn !== undefined && { expiresInSeconds: expiresIn }),
            ...(uses !== undefined && { uses }),
            ...(note !== undefined && { note }),
          },
        });
        const [lock, { tenant }] = await Promise.all([readLockKey(io), broker.api.getMe()]);
        io.stdout.write(`${lock === undefined ? code : codeWith(code, { tenant, key: lock.publicKey })}\n`);
        io.stderr.write(
          `invitation ${invitation.id} to ${cluster}, good for ${invitation.uses} until ${invitation.expiresAt}; the code is not shown again\n`,
        );
      }),
    );

const listCommand = (io: CliIo): Command =>
  new Command('list')
    .description('list invitations, without their codes')
    .addOption(outputOption())
    .action(({ output }: { output: Format }) =>
      withBroker(io, async (broker) => {
        const paint = paintFor(io.stdout, io.env);
        printListing(io, output, {
          items: await broker.all((page) => broker.api.listInvitations({ query: page })),
          columns: [
            { head: 'id', cell: ({ id }) => id },
            { head: 'cluster', cell: ({ cluster }) => cluster },
            { head: 'state', cell: ({ state }) => state, paint: (text) => paint(toneOf(text), text) },
            { head: 'limits', cell: ({ limits }) => resourcesText(limits) || '-' },
            { head: 'classes', cell: ({ classes }) => classes.join(',') },
            { head: 'used', cell: ({ uses, usesLeft }) => `${uses - usesLeft}/${uses}` },
            {
              head: 'by',
              cell: ({ redemptions }) => redemptions.map((r) => `${r.tenant}/${r.cluster}`).join(',') || '-',
            },
            { head: 'expires', cell: ({ expiresAt }) => expiresAt },
            { head: 'note', cell: ({ note }) => note || '-' },
          ],
          name: ({ id }) => `invitation/${id}`,
          none: 'no invitations; run `isthmus invite create CLUSTER`',
        });
      }),
    );

const revokeCommand = (io: CliIo): Command =>
  new Command('revoke')
    .description('make an invitation useless at once; peerings that both clusters agreed to stay')
    .argument('<id>', 'id of the invitation, iv_…')
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const invitation = await broker.api.revokeInvitation({ path: { invitation: id } });
        io.stdout.write(`invitation ${invitation.id} to ${invitation.cluster} is revoked\n`);
        if (invitation.redemptions.length > 0) {
          io.stderr.write('it was used; end those peerings with `isthmus unpeer` if you want to:\n');
          for (const { tenant, cluster } of invitation.redemptions)
            io.stderr.write(`  isthmus unpeer ${cluster} ${invitation.cluster}    # of tenant ${tenant}\n`);
        }
      }),
    );
