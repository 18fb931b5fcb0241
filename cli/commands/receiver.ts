/** What the commands of webhooks and of event targets have in common: both get events, in deliveries that can be looked at and sent again. */
import { Command, Option } from 'commander';
import type { BrokerClient } from '#cli/broker/broker-client.ts';
import { withBroker } from '#cli/broker/with-broker.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import { paintFor, toneOf } from '#cli/output/style.ts';
import type { Column } from '#cli/output/table.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import type { Webhook, WebhookDelivery } from '#shared/schema/api/webhooks.ts';
import { outputOption, positiveInt } from './options.ts';

type Api = BrokerClient['api'];
type Shown = Pick<Webhook, 'id' | 'types' | 'state' | 'disabledReason' | 'failingSince' | 'description'>;
type Delivery = Omit<WebhookDelivery, 'webhook' | 'lastAttempt'>;
type Listed<T> = Promise<{ items: T[]; cursor?: string | undefined }>;
interface PageQuery {
  readonly limit: number;
  readonly cursor: string | undefined;
}

export interface Receiver<R extends Shown, D extends Delivery> {
  /** As in `an event target`. */
  readonly article: 'a' | 'an';
  readonly noun: string;
  /** Before `/` in names that are printed. */
  readonly resource: string;
  readonly idHelp: string;
  readonly listHelp: string;
  /** How to make the first one. */
  readonly make: string;
  readonly address: { readonly head: string; readonly cell: (receiver: R) => string };
  readonly outcomeOf: (delivery: D) => string;
  readonly failed: { readonly code: ErrorCode; readonly field: string };
  readonly list: (api: Api, query: PageQuery) => Listed<R>;
  readonly remove: (api: Api, id: string) => Promise<R>;
  readonly enable: (api: Api, id: string, enabled: boolean) => Promise<R>;
  readonly test: (api: Api, id: string) => Promise<{ readonly id: string }>;
  /** Answers when it is settled or `waitSeconds` have passed. */
  readonly settled: (
    api: Api,
    id: string,
    delivery: string,
    waitSeconds: number,
    options: { readonly timeoutMs: number },
  ) => Promise<D>;
  readonly deliveries: (api: Api, id: string, query: PageQuery & { state: D['state'] | undefined }) => Listed<D>;
  readonly replay: (api: Api, id: string, delivery: string) => Promise<{ readonly id: string }>;
  readonly replayDead: (
    api: Api,
    id: string,
    body: { cursor?: string },
  ) => Promise<{ replayed: number; cursor?: string | undefined }>;
}

/** All but making one. */
export const receiverCommands = <R extends Shown, D extends Delivery>(
  io: CliIo,
  receiver: Receiver<R, D>,
): readonly Command[] => [
  listCommand(io, receiver),
  deleteCommand(io, receiver),
  switchCommand(io, receiver, 'enable'),
  switchCommand(io, receiver, 'disable'),
  testCommand(io, receiver),
  deliveriesCommand(io, receiver),
  replayCommand(io, receiver),
];

const shortTypes = (type: string): string => type.replace('dev.isthmus.', '');

const listCommand = <R extends Shown, D extends Delivery>(io: CliIo, receiver: Receiver<R, D>): Command =>
  new Command('list')
    .description(receiver.listHelp)
    .addOption(outputOption())
    .action(({ output }: { output: Format }) =>
      withBroker(io, async (broker) => {
        const paint = paintFor(io.stdout, io.env);
        const columns: Column<R>[] = [
          { head: 'id', cell: ({ id }) => id },
          receiver.address,
          { head: 'types', cell: ({ types }) => types.map(shortTypes).join(',') },
          { head: 'state', cell: ({ state }) => state, paint: (text) => paint(toneOf(text), text) },
          { head: 'trouble', cell: troubleOf },
          { head: 'description', cell: ({ description }) => description },
        ];
        printListing(io, output, {
          items: await broker.all((page) => receiver.list(broker.api, page)),
          columns,
          name: ({ id }) => `${receiver.resource}/${id}`,
          none: `no ${receiver.noun}s; run \`${receiver.make}\``,
        });
      }),
    );

function troubleOf({ disabledReason, failingSince }: Shown): string {
  if (disabledReason !== undefined) return disabledReason;
  return failingSince === undefined ? '' : `failing since ${failingSince}`;
}

const deleteCommand = <R extends Shown, D extends Delivery>(io: CliIo, receiver: Receiver<R, D>): Command =>
  new Command('delete')
    .description(`delete ${receiver.article} ${receiver.noun}; what waits for it is dropped`)
    .argument('<id>', receiver.idHelp)
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const gone = await receiver.remove(broker.api, id);
        io.stdout.write(`${receiver.noun} ${gone.id} is deleted\n`);
      }),
    );

const switchCommand = <R extends Shown, D extends Delivery>(
  io: CliIo,
  receiver: Receiver<R, D>,
  word: 'enable' | 'disable',
): Command =>
  new Command(word)
    .description(
      word === 'enable'
        ? `switch ${receiver.article} ${receiver.noun} on again; what happened meanwhile is not sent to it`
        : `stop ${receiver.article} ${receiver.noun} without deleting it`,
    )
    .argument('<id>', receiver.idHelp)
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const { id: of, state } = await receiver.enable(broker.api, id, word === 'enable');
        io.stdout.write(`${receiver.noun} ${of} is ${state}\n`);
      }),
    );

const testWaitSeconds = 15;

const testCommand = <R extends Shown, D extends Delivery>(io: CliIo, receiver: Receiver<R, D>): Command =>
  new Command('test')
    .description(`send a test event to ${receiver.article} ${receiver.noun} and say what came of it`)
    .argument('<id>', receiver.idHelp)
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const planned = await receiver.test(broker.api, id);
        const delivery = await receiver.settled(broker.api, id, planned.id, testWaitSeconds, {
          timeoutMs: (testWaitSeconds + 15) * 1_000,
        });
        const outcome = receiver.outcomeOf(delivery);
        if (delivery.state === 'delivered') {
          io.stdout.write(`${delivery.id} was taken: ${outcome}\n`);
          return;
        }
        const { code, field } = receiver.failed;
        throw new AppError(code, `the ${receiver.noun} did not take ${delivery.id}: ${outcome}`, {
          detail: { [field]: id, delivery: delivery.id },
        });
      }),
    );

const deliveriesCommand = <R extends Shown, D extends Delivery>(io: CliIo, receiver: Receiver<R, D>): Command =>
  new Command('deliveries')
    .description(`what was or will be sent to ${receiver.article} ${receiver.noun}, newest first`)
    .argument('<id>', receiver.idHelp)
    .addOption(new Option('--state <state>', 'only those in this state').choices(['pending', 'delivered', 'dead']))
    .option('--limit <n>', 'how many of the newest', positiveInt, 50)
    .addOption(outputOption())
    .action((id: string, { state, limit, output }: { state?: D['state']; limit: number; output: Format }) =>
      withBroker(io, async (broker) => {
        const paint = paintFor(io.stdout, io.env);
        printListing(io, output, {
          items: await broker.all((page) => receiver.deliveries(broker.api, id, { ...page, state }), limit),
          columns: [
            { head: 'id', cell: (delivery) => delivery.id },
            { head: 'type', cell: ({ type }) => shortTypes(type) },
            { head: 'subject', cell: ({ subject }) => subject },
            { head: 'state', cell: (delivery) => delivery.state, paint: (text) => paint(toneOf(text), text) },
            { head: 'attempts', cell: ({ attempts }) => String(attempts) },
            { head: 'last', cell: receiver.outcomeOf },
            { head: 'next', cell: ({ nextAttemptAt }) => nextAttemptAt ?? '' },
          ],
          name: (delivery) => `delivery/${delivery.id}`,
          none: 'no deliveries',
        });
      }),
    );

const replayCommand = <R extends Shown, D extends Delivery>(io: CliIo, receiver: Receiver<R, D>): Command =>
  new Command('replay')
    .description('send again: one delivery, or all dead letters')
    .argument('<id>', receiver.idHelp)
    .argument('[delivery]', 'id of the delivery, ev_…; default: every dead letter')
    .action((id: string, delivery: string | undefined) =>
      withBroker(io, async (broker) => {
        if (delivery !== undefined) {
          const again = await receiver.replay(broker.api, id, delivery);
          io.stdout.write(`${again.id} is sent again\n`);
          return;
        }
        let count = 0;
        let cursor: string | undefined;
        do {
          const page = await receiver.replayDead(broker.api, id, cursor === undefined ? {} : { cursor });
          count += page.replayed;
          cursor = page.cursor;
        } while (cursor !== undefined);
        io.stdout.write(`${count} dead letters are sent again\n`);
      }),
    );
