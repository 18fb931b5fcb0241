/** isthmus member: the users that log in to the tenant through an identity provider, and their roles. */
import { Command, Option } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import { age } from '#cli/output/duration.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import type { Member } from '#shared/schema/api/tenancy.ts';
import { outputOption } from './options.ts';

const roleOption = (): Option =>
  new Option('--role <role>', 'what it may do').choices(['viewer', 'operator', 'admin']).makeOptionMandatory();

const named = ({ email, issuer, subject }: Member): string => email ?? `${subject} at ${issuer}`;

export const memberCommand = (io: CliIo): Command =>
  new Command('member')
    .addCommand(addCommand(io))
    .addCommand(listCommand(io))
    .addCommand(setRoleCommand(io))
    .addCommand(removeCommand(io));

interface AddOptions {
  readonly email?: string;
  readonly issuer?: string;
  readonly subject?: string;
  readonly name?: string;
  readonly role: Member['role'];
}

const addCommand = (io: CliIo): Command =>
  new Command('add')
    .description('add a user of a registered identity provider')
    .option('--email <address>', 'by e-mail address, as the provider verified it')
    .option('--issuer <url>', 'or by issuer and subject: URL of the provider')
    .option('--subject <subject>', 'and its name for the member')
    .option('--name <name>', 'for people')
    .addOption(roleOption())
    .action((options: AddOptions) =>
      withBroker(io, async (broker) => {
        const member = await broker.api.addMember({ body: options });
        io.stdout.write(`member ${member.id} (${named(member)}), role ${member.role}\n`);
      }),
    );

const listCommand = (io: CliIo): Command =>
  new Command('list')
    .description('list members')
    .addOption(outputOption())
    .action(({ output }: { output: Format }) =>
      withBroker(io, async (broker) => {
        const now = io.clock.now();
        printListing(io, output, {
          items: await broker.all((page) => broker.api.listMembers({ query: page })),
          columns: [
            { head: 'id', cell: ({ id }) => id },
            { head: 'member', cell: named },
            { head: 'name', cell: ({ name }) => name ?? '' },
            { head: 'role', cell: ({ role }) => role },
            { head: 'age', cell: ({ createdAt }) => age(Date.parse(createdAt), now) },
          ],
          name: ({ id }) => id,
          none: 'no members; keys alone open this tenant',
        });
      }),
    );

const setRoleCommand = (io: CliIo): Command =>
  new Command('set-role')
    .description('change what a member may do; its next request counts')
    .argument('<id>', 'id of the member, mb_…')
    .addOption(roleOption())
    .action((id: string, { role }: { role: Member['role'] }) =>
      withBroker(io, async (broker) => {
        const member = await broker.api.changeMember({ path: { member: id }, body: { role } });
        io.stdout.write(`member ${member.id} (${named(member)}), role ${member.role}\n`);
      }),
    );

const removeCommand = (io: CliIo): Command =>
  new Command('remove')
    .description('let a member in no more')
    .argument('<id>', 'id of the member, mb_…')
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const member = await broker.api.removeMember({ path: { member: id } });
        io.stdout.write(`member ${member.id} (${named(member)}) is removed\n`);
      }),
    );
