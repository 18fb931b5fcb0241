/** isthmus key: API keys of the tenant. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { openBroker } from '#cli/broker/broker-client.ts';
import { age, parseDuration } from '#cli/output/duration.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import type { BrokerApi } from '#shared/api-client/broker-api.ts';
import type { ApiKey } from '#shared/schema/api/resources.ts';
import { collect, outputOption } from './options.ts';

const seconds = (text: string): number => {
  const ms = parseDuration(text);
  if (ms === undefined || ms < 1_000) throw new InvalidArgumentError('Accepted are durations like 12h or 90d.');
  return Math.round(ms / 1_000);
};

/** Which there are, the broker knows: it names them when one is wrong. */
type Scope = NonNullable<Parameters<BrokerApi['createKey']>[0]['body']['scopes']>[number];

export const keyCommand = (io: CliIo): Command =>
  new Command('key')
    .addCommand(createCommand(io))
    .addCommand(listCommand(io))
    .addCommand(rotateCommand(io))
    .addCommand(revokeCommand(io));

const createCommand = (io: CliIo): Command =>
  new Command('create')
    .description('make a key; its secret is printed once, on standard output')
    .argument('<name>', 'what it is for')
    .addOption(
      new Option('--role <role>', 'what it may do').choices(['viewer', 'operator', 'admin']).makeOptionMandatory(),
    )
    .option(
      '--scope <permission>',
      'narrow it to this permission, for example peerings:read; may be repeated',
      collect,
      [],
    )
    .option('--expires-in <duration>', 'for example 90d; default: never', seconds)
    .action(
      async (
        name: string,
        { role, scope, expiresIn }: { role: ApiKey['role']; scope: Scope[]; expiresIn?: number },
      ) => {
        const broker = await openBroker(io);
        try {
          const { key, secret } = await broker.api.createKey({
            body: {
              name,
              role,
              ...(scope.length > 0 && { scopes: scope }),
              ...(expiresIn && { expiresInSeconds: expiresIn }),
            },
          });
          io.stdout.write(`${secret}\n`);
          io.stderr.write(`key ${key.id} (${key.name}), role ${key.role}; the secret is not shown again\n`);
        } finally {
          broker.close();
        }
      },
    );

const listCommand = (io: CliIo): Command =>
  new Command('list')
    .description('list keys, without their secrets')
    .addOption(outputOption())
    .action(async ({ output }: { output: Format }) => {
      const broker = await openBroker(io);
      try {
        const now = io.clock.now();
        printListing(io, output, {
          items: await broker.all((page) => broker.api.listKeys({ query: page })),
          columns: [
            { head: 'id', cell: ({ id }) => id },
            { head: 'name', cell: ({ name }) => name },
            { head: 'key', cell: ({ prefix }) => `${prefix}…` },
            { head: 'role', cell: ({ role }) => role },
            { head: 'scopes', cell: ({ scopes }) => scopes?.join(',') ?? 'all' },
            { head: 'state', cell: (key) => stateOf(key, now) },
            {
              head: 'used',
              cell: ({ lastUsedAt }) => (lastUsedAt === undefined ? 'never' : age(Date.parse(lastUsedAt), now)),
            },
            { head: 'age', cell: ({ createdAt }) => age(Date.parse(createdAt), now) },
          ],
          name: ({ id }) => id,
          none: 'no keys',
        });
      } finally {
        broker.close();
      }
    });

function stateOf({ revokedAt, expiresAt }: ApiKey, now: number): string {
  if (revokedAt !== undefined) return 'revoked';
  if (expiresAt === undefined) return 'active';
  return Date.parse(expiresAt) <= now ? 'expired' : `active until ${expiresAt}`;
}

const rotateCommand = (io: CliIo): Command =>
  new Command('rotate')
    .description('replace a key; the new secret is printed once, on standard output')
    .argument('<id>', 'id of the key, ak_…')
    .option('--overlap <duration>', 'how long the old secret keeps working', seconds, 0)
    .action(async (id: string, { overlap }: { overlap: number }) => {
      const broker = await openBroker(io);
      try {
        const { key, secret } = await broker.api.rotateKey({ path: { key: id }, body: { overlapSeconds: overlap } });
        io.stdout.write(`${secret}\n`);
        io.stderr.write(`key ${key.id} replaces ${id}; the secret is not shown again\n`);
      } finally {
        broker.close();
      }
    });

const revokeCommand = (io: CliIo): Command =>
  new Command('revoke')
    .description('make a key useless at once')
    .argument('<id>', 'id of the key, ak_…')
    .action(async (id: string) => {
      const broker = await openBroker(io);
      try {
        const key = await broker.api.revokeKey({ path: { key: id } });
        io.stdout.write(`key ${key.id} (${key.name}) is revoked\n`);
      } finally {
        broker.close();
      }
    });
