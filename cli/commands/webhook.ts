/** isthmus webhook: where this tenant's events are posted to. */
import { Command, Option } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import type { CliIo } from '#cli/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import { paintFor, toneOf } from '#cli/output/style.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Webhook, WebhookDelivery } from '#shared/schema/api/webhooks.ts';
import { collect, lifetime, outputOption, positiveInt } from './options.ts';

export const webhookCommand = (io: CliIo): Command =>
  new Command('webhook')
    .description('have events posted to a URL, signed; see docs/events.md')
    .addCommand(createCommand(io))
    .addCommand(listCommand(io))
    .addCommand(deleteCommand(io))
    .addCommand(switchCommand(io, 'enable'))
    .addCommand(switchCommand(io, 'disable'))
    .addCommand(rotateCommand(io))
    .addCommand(testCommand(io))
    .addCommand(deliveriesCommand(io))
    .addCommand(replayCommand(io));

const idHelp = 'id of the webhook, wh_…';

const createCommand = (io: CliIo): Command =>
  new Command('create')
    .description('make a webhook; its secret is printed once, on standard output')
    .argument('<url>', 'https URL that answers 2xx to what it takes')
    .option('--type <type>', 'an event type, or a group such as peering.*; may be repeated; default: all', collect, [])
    .option('--description <text>', 'what it is for')
    .addHelpText(
      'after',
      `
Verify what comes with any library for Standard Webhooks and this secret.

Example:
  isthmus webhook create https://ops.example.com/isthmus --type 'peering.*' --type cluster.left`,
    )
    .action((url: string, { type, description }: { type: string[]; description?: string }) =>
      withBroker(io, async (broker) => {
        const { webhook, secret } = await broker.api.createWebhook({
          body: { url, ...(type.length > 0 && { types: type }), ...(description !== undefined && { description }) },
        });
        io.stdout.write(`${secret}\n`);
        io.stderr.write(
          `webhook ${webhook.id} gets ${webhook.types.join(', ')}; the secret is not shown again; try it: isthmus webhook test ${webhook.id}\n`,
        );
      }),
    );

const listCommand = (io: CliIo): Command =>
  new Command('list')
    .description('list webhooks, without their secrets')
    .addOption(outputOption())
    .action(({ output }: { output: Format }) =>
      withBroker(io, async (broker) => {
        const paint = paintFor(io.stdout, io.env);
        printListing(io, output, {
          items: await broker.all((page) => broker.api.listWebhooks({ query: page })),
          columns: [
            { head: 'id', cell: ({ id }) => id },
            { head: 'url', cell: ({ url }) => url },
            { head: 'types', cell: ({ types }) => types.map((type) => type.replace('dev.isthmus.', '')).join(',') },
            { head: 'state', cell: ({ state }) => state, paint: (text) => paint(toneOf(text), text) },
            { head: 'trouble', cell: troubleOf },
            { head: 'description', cell: ({ description }) => description },
          ],
          name: ({ id }) => `webhook/${id}`,
          none: 'no webhooks; run `isthmus webhook create URL`',
        });
      }),
    );

function troubleOf({ disabledReason, failingSince }: Webhook): string {
  if (disabledReason !== undefined) return disabledReason;
  return failingSince === undefined ? '' : `failing since ${failingSince}`;
}

const deleteCommand = (io: CliIo): Command =>
  new Command('delete')
    .description('delete a webhook; what waits for it is dropped')
    .argument('<id>', idHelp)
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const webhook = await broker.api.deleteWebhook({ path: { webhook: id } });
        io.stdout.write(`webhook ${webhook.id} is deleted\n`);
      }),
    );

const switchCommand = (io: CliIo, word: 'enable' | 'disable'): Command =>
  new Command(word)
    .description(
      word === 'enable'
        ? 'switch a webhook on again; what happened meanwhile is not sent to it'
        : 'stop a webhook without deleting it',
    )
    .argument('<id>', idHelp)
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const body = { enabled: word === 'enable' };
        const webhook = await broker.api.changeWebhook({ path: { webhook: id }, body });
        io.stdout.write(`webhook ${webhook.id} is ${webhook.state}\n`);
      }),
    );

const rotateCommand = (io: CliIo): Command =>
  new Command('rotate')
    .description('replace the secret of a webhook; the new one is printed once, on standard output')
    .argument('<id>', idHelp)
    .option('--overlap <duration>', 'how long the old secret signs as well, for example 2d; default: 1d', lifetime)
    .option('--now', 'the old secret signs nothing more')
    .action((id: string, { overlap, now }: { overlap?: number; now?: boolean }) =>
      withBroker(io, async (broker) => {
        const overlapSeconds = now ? 0 : overlap;
        const { webhook, secret } = await broker.api.rotateWebhook({
          path: { webhook: id },
          body: { ...(overlapSeconds !== undefined && { overlapSeconds }) },
        });
        io.stdout.write(`${secret}\n`);
        const until = webhook.oldSecretExpiresAt;
        io.stderr.write(
          `webhook ${webhook.id} signs with this secret${until === undefined ? '' : `, and with the old one as well until ${until}`}; it is not shown again\n`,
        );
      }),
    );

const testWaitSeconds = 15;

const testCommand = (io: CliIo): Command =>
  new Command('test')
    .description('send a test event to a webhook and say what came of it')
    .argument('<id>', idHelp)
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const planned = await broker.api.testWebhook({ path: { webhook: id } });
        const delivery = await broker.api.getDelivery(
          { path: { webhook: id, delivery: planned.id }, query: { wait: testWaitSeconds } },
          { timeoutMs: (testWaitSeconds + 15) * 1_000 },
        );
        if (delivery.state === 'delivered') {
          io.stdout.write(`${delivery.id} was taken: ${outcomeOf(delivery)}\n`);
          return;
        }
        throw new AppError('webhook_failed', `the webhook did not take ${delivery.id}: ${outcomeOf(delivery)}`, {
          detail: { webhook: id, delivery: delivery.id },
        });
      }),
    );

function outcomeOf({ lastAttempt }: WebhookDelivery): string {
  if (!lastAttempt) return 'not attempted yet';
  const { status, error, answer, durationMs } = lastAttempt;
  if (status === undefined) return error ?? 'no answer';
  return `status ${status} after ${durationMs} ms${answer ? `, ${JSON.stringify(answer.slice(0, 60))}` : ''}`;
}

const deliveriesCommand = (io: CliIo): Command =>
  new Command('deliveries')
    .description('what was or will be sent to a webhook, newest first')
    .argument('<id>', idHelp)
    .addOption(new Option('--state <state>', 'only those in this state').choices(['pending', 'delivered', 'dead']))
    .option('--limit <n>', 'how many of the newest', positiveInt, 50)
    .addOption(outputOption())
    .action(
      (id: string, { state, limit, output }: { state?: WebhookDelivery['state']; limit: number; output: Format }) =>
        withBroker(io, async (broker) => {
          const paint = paintFor(io.stdout, io.env);
          printListing(io, output, {
            items: await broker.all(
              (page) => broker.api.listDeliveries({ path: { webhook: id }, query: { ...page, state } }),
              limit,
            ),
            columns: [
              { head: 'id', cell: (delivery) => delivery.id },
              { head: 'type', cell: ({ type }) => type.replace('dev.isthmus.', '') },
              { head: 'subject', cell: ({ subject }) => subject },
              { head: 'state', cell: (delivery) => delivery.state, paint: (text) => paint(toneOf(text), text) },
              { head: 'attempts', cell: ({ attempts }) => String(attempts) },
              { head: 'last', cell: outcomeOf },
              { head: 'next', cell: ({ nextAttemptAt }) => nextAttemptAt ?? '' },
            ],
            name: (delivery) => `delivery/${delivery.id}`,
            none: 'no deliveries',
          });
        }),
    );

const replayCommand = (io: CliIo): Command =>
  new Command('replay')
    .description('send again: one delivery, or all dead letters')
    .argument('<id>', idHelp)
    .argument('[delivery]', 'id of the delivery, ev_…; default: every dead letter')
    .action((id: string, delivery: string | undefined) =>
      withBroker(io, async (broker) => {
        if (delivery !== undefined) {
          const again = await broker.api.replayDelivery({ path: { webhook: id, delivery } });
          io.stdout.write(`${again.id} is sent again\n`);
          return;
        }
        let count = 0;
        let cursor: string | undefined;
        do {
          const body = cursor === undefined ? {} : { cursor };
          const page = await broker.api.replayWebhook({ path: { webhook: id }, body });
          count += page.replayed;
          cursor = page.cursor;
        } while (cursor !== undefined);
        io.stdout.write(`${count} dead letters are sent again\n`);
      }),
    );
