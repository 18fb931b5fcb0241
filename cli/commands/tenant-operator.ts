/** What the operator of a broker does with tenants; needs a login with an operator key. */
import { Argument, Command, InvalidArgumentError } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import { age } from '#cli/output/duration.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import { outputOption } from './options.ts';

const limitNames = ['clusters', 'peerings', 'requestsPerMinute', 'eventsPerMinute'];
type Limits = Record<string, number | null>;

/** `clusters=10`, or `clusters=default` to go back. */
function limit(text: string, before: Limits): Limits {
  const [name = '', value = ''] = text.split('=', 2);
  const number = value === 'default' ? null : Number(value);
  if (!limitNames.includes(name) || value === '' || (number !== null && !(Number.isInteger(number) && number >= 0))) {
    throw new InvalidArgumentError(`Accepted is NAME=NUMBER or NAME=default; names are ${limitNames.join(', ')}.`);
  }
  return { ...before, [name]: number };
}

export const operatorCommands = (io: CliIo): readonly Command[] => [
  new Command('create')
    .description('make a tenant; its first admin key is printed once, on standard output (operator)')
    .argument('<name>', 'a DNS-1123 label, given once and for all')
    .option('--display-name <text>', 'for people')
    .option('--limit <name=number>', `a limit of its own, may be repeated: ${limitNames.join(', ')}`, limit, {})
    .action((name: string, { displayName, limit: limits }: { displayName?: string; limit: Limits }) =>
      withBroker(io, async (broker) => {
        const body = {
          name,
          ...(displayName && { displayName }),
          ...(Object.keys(limits).length > 0 && { limits }),
        };
        const { tenant, firstKey } = await broker.api.createTenant({ body });
        io.stdout.write(`${firstKey.secret}\n`);
        io.stderr.write(`tenant ${tenant.name} is made; the admin key is not shown again\n`);
      }),
    ),
  new Command('list')
    .description('list tenants (operator)')
    .addOption(outputOption())
    .action(({ output }: { output: Format }) =>
      withBroker(io, async (broker) => {
        const now = io.clock.now();
        printListing(io, output, {
          items: await broker.all((page) => broker.api.listTenants({ query: page })),
          columns: [
            { head: 'name', cell: ({ name }) => name },
            { head: 'display name', cell: ({ displayName }) => displayName },
            { head: 'state', cell: ({ state }) => state },
            { head: 'clusters', cell: ({ limits }) => `<= ${limits.clusters}` },
            { head: 'peerings', cell: ({ limits }) => `<= ${limits.peerings}` },
            { head: 'age', cell: ({ createdAt }) => age(Date.parse(createdAt), now) },
          ],
          name: ({ name }) => name,
          none: 'no tenants',
        });
      }),
    ),
  new Command('suspend')
    .description('refuse every request of a tenant; running peerings go on (operator)')
    .argument('<name>', 'name of the tenant')
    .option('--reason <text>', 'what its members are told')
    .action((name: string, { reason }: { reason?: string }) =>
      change(io, name, { state: 'suspended', ...(reason && { reason }) }),
    ),
  new Command('resume')
    .description('end a suspension (operator)')
    .argument('<name>', 'name of the tenant')
    .action((name: string) => change(io, name, { state: 'active' })),
  new Command('recover')
    .description('make an admin key of a tenant whose own ones are lost, for a day; it is printed once (operator)')
    .argument('<name>', 'name of the tenant')
    .requiredOption('--reason <text>', 'why; the tenant finds it in its audit log')
    .action((name: string, { reason }: { reason: string }) =>
      withBroker(io, async (broker) => {
        const { key, secret } = await broker.api.recoverTenant({ path: { tenant: name }, body: { reason } });
        io.stdout.write(`${secret}\n`);
        io.stderr.write(`an admin key of tenant ${name} until ${key.expiresAt}; it is not shown again\n`);
      }),
    ),
  new Command('limit')
    .description('set limits of a tenant (operator)')
    .argument('<name>', 'name of the tenant')
    .addArgument(
      new Argument('<limits...>', `NAME=NUMBER or NAME=default: ${limitNames.join(', ')}`).argParser(
        (text: string, before: Limits | undefined) => limit(text, before ?? {}),
      ),
    )
    .action((name: string, limits: Limits) => change(io, name, { limits })),
];

const change = (io: CliIo, name: string, body: object): Promise<void> =>
  withBroker(io, async (broker) => {
    const tenant = await broker.api.changeTenant({ path: { tenant: name }, body });
    const limits = Object.entries(tenant.limits).map(([what, most]) => `${what} ${most}`);
    io.stdout.write(`tenant ${tenant.name} is ${tenant.state}; limits: ${limits.join(', ')}\n`);
  });
