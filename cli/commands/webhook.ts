/** isthmus webhook: where this tenant's events are posted to. */
import { Command } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import type { CliIo } from '#cli/output/io.ts';
import type { Webhook, WebhookDelivery } from '#shared/schema/api/webhooks.ts';
import { collect, lifetime } from './options.ts';
import { type Receiver, receiverCommands } from './receiver.ts';

export function webhookCommand(io: CliIo): Command {
  const command = new Command('webhook').addCommand(createCommand(io)).addCommand(rotateCommand(io));
  for (const one of receiverCommands(io, webhooks)) command.addCommand(one);
  return command;
}

const idHelp = 'id of the webhook, wh_…';

const webhooks: Receiver<Webhook, WebhookDelivery> = {
  article: 'a',
  noun: 'webhook',
  resource: 'webhook',
  idHelp,
  listHelp: 'list webhooks, without their secrets',
  make: 'isthmus webhook create URL',
  address: { head: 'url', cell: ({ url }) => url },
  outcomeOf,
  failed: { code: 'webhook_failed', field: 'webhook' },
  list: (api, query) => api.listWebhooks({ query }),
  remove: (api, webhook) => api.deleteWebhook({ path: { webhook } }),
  enable: (api, webhook, enabled) => api.changeWebhook({ path: { webhook }, body: { enabled } }),
  test: (api, webhook) => api.testWebhook({ path: { webhook } }),
  settled: (api, webhook, delivery, wait, options) =>
    api.getDelivery({ path: { webhook, delivery }, query: { wait } }, options),
  deliveries: (api, webhook, query) => api.listDeliveries({ path: { webhook }, query }),
  replay: (api, webhook, delivery) => api.replayDelivery({ path: { webhook, delivery } }),
  replayDead: (api, webhook, body) => api.replayWebhook({ path: { webhook }, body }),
};

function outcomeOf({ lastAttempt }: WebhookDelivery): string {
  if (!lastAttempt) return 'not attempted yet';
  const { status, error, answer, durationMs } = lastAttempt;
  if (status === undefined) return error ?? 'no answer';
  return `status ${status} after ${durationMs} ms${answer ? `, ${JSON.stringify(answer.slice(0, 60))}` : ''}`;
}

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
