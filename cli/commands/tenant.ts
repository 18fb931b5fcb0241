/** isthmus tenant: the own tenant - limits, identity providers, export, end - and, for operators, those of a broker. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import type { BrokerClient } from '#cli/broker/broker-client.ts';
import { isOperatorKey, loadLogin } from '#cli/broker/login-config.ts';
import { withBroker } from '#cli/broker/with-broker.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import type { BrokerApi } from '#shared/api-client/broker-api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { Role } from '#shared/schema/api/resources.ts';
import type { DeletionProgress } from '#shared/schema/api/tenancy.ts';
import { outputOption } from './options.ts';
import { operatorCommands } from './tenant-operator.ts';

export function tenantCommand(io: CliIo): Command {
  const command = new Command('tenant')
    .addCommand(showCommand(io))
    .addCommand(renameCommand(io))
    .addCommand(issuerCommand(io))
    .addCommand(exportCommand(io))
    .addCommand(deleteCommand(io));
  for (const child of operatorCommands(io)) command.addCommand(child);
  return command.addHelpText(
    'after',
    `
Commands marked (operator) need a login with an operator key, which \`isthmus broker serve\` prints at its first start:
  isthmus login URL --ca-hash HASH --key iso_…`,
  );
}

const showCommand = (io: CliIo): Command =>
  new Command('show').description('show state, limits and what is used of them').action(() =>
    withBroker(io, async (broker) => {
      const tenant = await broker.api.getOwnTenant();
      const { limits, usage } = tenant;
      io.stdout.write(
        [
          `Tenant:    ${tenant.name}${tenant.displayName === tenant.name ? '' : ` (${tenant.displayName})`}`,
          `State:     ${tenant.state}${tenant.suspendedReason === undefined ? '' : `: ${tenant.suspendedReason}`}`,
          `Clusters:  ${usage.clusters} of ${limits.clusters}`,
          `Peerings:  ${usage.peerings} of ${limits.peerings}`,
          `Requests:  at most ${limits.requestsPerMinute} a minute`,
          `Events:    at most ${limits.eventsPerMinute} a minute`,
          '',
        ].join('\n'),
      );
    }),
  );

const renameCommand = (io: CliIo): Command =>
  new Command('rename')
    .description('change the name for people; the one in keys stays')
    .argument('<text>', 'the new name')
    .action((displayName: string) =>
      withBroker(io, async (broker) => {
        const body = { displayName };
        const tenant = await broker.api.renameTenant({ body });
        io.stdout.write(`tenant ${tenant.name} is now called ${tenant.displayName}\n`);
      }),
    );

type RoleWords = NonNullable<Parameters<BrokerApi['registerIssuer']>[0]['body']['roles']>;

function roleWord(text: string, before: RoleWords): RoleWords {
  const equals = text.lastIndexOf('=');
  const role = Role.safeParse(text.slice(equals + 1));
  if (equals <= 0 || !role.success) {
    throw new InvalidArgumentError('Accepted is WORD=ROLE with a role of viewer, operator or admin.');
  }
  return { ...before, [text.slice(0, equals)]: role.data };
}

interface IssuerOptions {
  readonly audience: string;
  readonly subjectClaim?: string;
  readonly emailClaim?: string;
  readonly roleClaim?: string;
  readonly map: RoleWords;
}

const issuerCommand = (io: CliIo): Command =>
  new Command('issuer')
    .description('identity providers whose tokens the tenant accepts')
    .addCommand(
      new Command('add')
        .description('accept tokens of an identity provider (OpenID Connect)')
        .argument('<url>', 'its issuer URL')
        .requiredOption('--audience <text>', 'the audience that its tokens for this broker have')
        .option('--subject-claim <name>', 'claim of its tokens that holds the subject (default: sub)')
        .option('--email-claim <name>', 'where they hold the e-mail address (default: email)')
        .option('--role-claim <name>', 'where they hold words that --map turns into roles, for example groups')
        .option('--map <word=role>', 'a word of the role claim and the role it gives; may be repeated', roleWord, {})
        .action((url: string, options: IssuerOptions) =>
          withBroker(io, async (broker) => {
            const { audience, subjectClaim: subject, emailClaim: email, roleClaim: role, map: roles } = options;
            const claims = { ...(subject && { subject }), ...(email && { email }), ...(role && { role }) };
            const body = { url, audience, claims, roles };
            const issuer = await broker.api.registerIssuer({ body });
            io.stdout.write(`issuer ${issuer.id} (${issuer.url}) is accepted\n`);
          }),
        ),
    )
    .addCommand(
      new Command('list')
        .description('list identity providers')
        .addOption(outputOption())
        .action(({ output }: { output: Format }) =>
          withBroker(io, async (broker) => {
            printListing(io, output, {
              items: await broker.all((page) => broker.api.listIssuers({ query: page })),
              columns: [
                { head: 'id', cell: ({ id }) => id },
                { head: 'url', cell: ({ url }) => url },
                { head: 'audience', cell: ({ audience }) => audience },
                { head: 'roles', cell: ({ claims, roles }) => rolesOf(claims.role, roles) },
              ],
              name: ({ id }) => id,
              none: 'no identity providers',
            });
          }),
        ),
    )
    .addCommand(
      new Command('remove')
        .description('accept no more tokens of an identity provider')
        .argument('<id>', 'id of the issuer, is_…')
        .action((id: string) =>
          withBroker(io, async (broker) => {
            const issuer = await broker.api.removeIssuer({ path: { issuer: id } });
            io.stdout.write(`issuer ${issuer.id} (${issuer.url}) is removed\n`);
          }),
        ),
    );

const rolesOf = (claim: string | undefined, roles: Readonly<Record<string, string>>): string =>
  claim === undefined
    ? 'of members'
    : `${claim}: ${Object.entries(roles)
        .map(([word, role]) => `${word}=${role}`)
        .join(',')}`;

const exportCommand = (io: CliIo): Command =>
  new Command('export')
    .description('write everything of the tenant as JSON lines, without secrets')
    .option('--file <file>', 'into this file, mode 0600, instead of standard output')
    .action(({ file }: { file?: string }) =>
      withBroker(io, async (broker) => {
        const out = file === undefined ? undefined : createWriteStream(file, { mode: 0o600 });
        if (out) await once(out, 'open').catch((cause: Error) => Promise.reject(unwritable(file ?? '', cause)));
        let cursor: string | undefined;
        let lines = 0;
        do {
          const page = await broker.text('exportTenant', { cursor });
          lines += page.text.split('\n').length - 1;
          if (out) out.write(page.text);
          else io.stdout.write(page.text);
          const next = page.headers['x-next-cursor'];
          cursor = typeof next === 'string' ? next : undefined;
        } while (cursor !== undefined);
        if (!out) return;
        out.end();
        await once(out, 'finish');
        io.stderr.write(`${lines} lines in ${file}\n`);
      }),
    );

const unwritable = (file: string, cause: Error): AppError =>
  new AppError('invalid_input', `${file} cannot be written: ${cause.message}`, {
    cause,
    detail: { field: 'file', value: file },
  });

interface DeleteOptions {
  readonly force?: boolean;
  readonly yes?: boolean;
}

const deleteCommand = (io: CliIo): Command =>
  new Command('delete')
    .description('delete the tenant and everything in it; with an operator key, any tenant')
    .argument('<name>', 'the name of the tenant, to confirm')
    .option('--force', 'unpeer what has not ended')
    .option('--yes', 'really do it')
    .action((name: string, options: DeleteOptions) =>
      withBroker(io, async (broker) => {
        const operator = isOperatorKey((await loadLogin(io)).key);
        if (!options.yes) {
          throw new AppError(
            'invalid_input',
            `deleting tenant ${name} cannot be undone, and its name is never given again`,
            {
              detail: { field: 'yes', remedy: 'save it with `isthmus tenant export`, then repeat with --yes' },
            },
          );
        }
        const done = await (operator ? deleteAny : deleteOwn)(broker, name, options.force === true);
        io.stdout.write(
          done.state === 'deleted'
            ? `tenant ${name} is deleted\n`
            : `tenant ${name} is deleted as soon as ${done.peerings.length} peerings have ended\n`,
        );
      }),
    );

const deleteAny = (broker: BrokerClient, name: string, force: boolean): Promise<DeletionProgress> =>
  broker.api.deleteTenant({ path: { tenant: name }, query: { confirm: name, force } });

async function deleteOwn(broker: BrokerClient, name: string, force: boolean): Promise<DeletionProgress> {
  const { confirmation } = await broker.api.requestDeletion();
  return broker.api.confirmDeletion({ body: { name, confirmation, force } });
}
