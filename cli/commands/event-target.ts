/** isthmus event-target: which buses and queues of this tenant at AWS get its events. */
import { Command, Option } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import type { CliIo } from '#cli/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import { paintFor, toneOf } from '#cli/output/style.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { EventTarget, EventTargetDelivery } from '#shared/schema/api/event-targets.ts';
import { collect, outputOption, positiveInt } from './options.ts';

export const eventTargetCommand = (io: CliIo): Command =>
  new Command('event-target')
    .description('have events put into your own EventBridge bus or SQS queue; see docs/events.md')
    .addCommand(createCommand(io))
    .addCommand(policiesCommand(io))
    .addCommand(listCommand(io))
    .addCommand(deleteCommand(io))
    .addCommand(switchCommand(io, 'enable'))
    .addCommand(switchCommand(io, 'disable'))
    .addCommand(testCommand(io))
    .addCommand(deliveriesCommand(io))
    .addCommand(replayCommand(io));

const idHelp = 'id of the event target, et_…';

const createCommand = (io: CliIo): Command =>
  new Command('create')
    .description('make an event target; prints the external ID that its role has to ask for')
    .argument('<arn>', 'ARN of an EventBridge bus or an SQS queue')
    .requiredOption('--role <arn>', 'ARN of a role in the same account, isthmus-events-NAME; it may be made afterwards')
    .option('--type <type>', 'an event type, or a group such as peering.*; may be repeated; default: all', collect, [])
    .option('--description <text>', 'what it is for')
    .addHelpText(
      'after',
      `
Example:
  isthmus event-target create arn:aws:sqs:eu-central-1:123456789012:peerings \\
    --role arn:aws:iam::123456789012:role/isthmus-events-ops --type 'peering.*'`,
    )
    .action((arn: string, { role, type, description }: { role: string; type: string[]; description?: string }) =>
      withBroker(io, async (broker) => {
        const { id, externalId, principal, types } = await broker.api.createEventTarget({
          body: {
            arn,
            roleArn: role,
            ...(type.length > 0 && { types: type }),
            ...(description !== undefined && { description }),
          },
        });
        io.stdout.write(`${externalId}\n`);
        io.stderr.write(
          `event target ${id} gets ${types.join(', ')}; its role has to trust ${principal} with that external ID; see: isthmus event-target policies ${id}; then try it: isthmus event-target test ${id}\n`,
        );
      }),
    );

/** What the role needs, ready for `aws iam create-role` and `put-role-policy`. */
export function policiesOf({ arn, type, principal, externalId }: EventTarget): object {
  const Version = '2012-10-17';
  return {
    trust: {
      Version,
      Statement: [
        {
          Effect: 'Allow',
          Principal: { AWS: principal },
          Action: 'sts:AssumeRole',
          Condition: { StringEquals: { 'sts:ExternalId': externalId } },
        },
      ],
    },
    permissions: {
      Version,
      Statement: [{ Effect: 'Allow', Action: type === 'sqs' ? 'sqs:SendMessage' : 'events:PutEvents', Resource: arn }],
    },
  };
}

const policiesCommand = (io: CliIo): Command =>
  new Command('policies')
    .description('print the trust policy and the permissions that the role of an event target needs, as JSON')
    .argument('<id>', idHelp)
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const target = await broker.api.getEventTarget({ path: { target: id } });
        io.stdout.write(`${JSON.stringify(policiesOf(target), null, 2)}\n`);
      }),
    );

const listCommand = (io: CliIo): Command =>
  new Command('list')
    .description('list event targets')
    .addOption(outputOption())
    .action(({ output }: { output: Format }) =>
      withBroker(io, async (broker) => {
        const paint = paintFor(io.stdout, io.env);
        printListing(io, output, {
          items: await broker.all((page) => broker.api.listEventTargets({ query: page })),
          columns: [
            { head: 'id', cell: ({ id }) => id },
            { head: 'arn', cell: ({ arn }) => arn },
            { head: 'types', cell: ({ types }) => types.map((type) => type.replace('dev.isthmus.', '')).join(',') },
            { head: 'state', cell: ({ state }) => state, paint: (text) => paint(toneOf(text), text) },
            { head: 'trouble', cell: troubleOf },
            { head: 'description', cell: ({ description }) => description },
          ],
          name: ({ id }) => `event-target/${id}`,
          none: 'no event targets; run `isthmus event-target create ARN --role ROLE`',
        });
      }),
    );

function troubleOf({ disabledReason, failingSince }: EventTarget): string {
  if (disabledReason !== undefined) return disabledReason;
  return failingSince === undefined ? '' : `failing since ${failingSince}`;
}

const deleteCommand = (io: CliIo): Command =>
  new Command('delete')
    .description('delete an event target; what waits for it is dropped')
    .argument('<id>', idHelp)
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const target = await broker.api.deleteEventTarget({ path: { target: id } });
        io.stdout.write(`event target ${target.id} is deleted\n`);
      }),
    );

const switchCommand = (io: CliIo, word: 'enable' | 'disable'): Command =>
  new Command(word)
    .description(
      word === 'enable'
        ? 'switch an event target on again; what happened meanwhile is not sent to it'
        : 'stop an event target without deleting it',
    )
    .argument('<id>', idHelp)
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const body = { enabled: word === 'enable' };
        const target = await broker.api.changeEventTarget({ path: { target: id }, body });
        io.stdout.write(`event target ${target.id} is ${target.state}\n`);
      }),
    );

const testWaitSeconds = 15;

const testCommand = (io: CliIo): Command =>
  new Command('test')
    .description('send a test event to an event target and say what came of it')
    .argument('<id>', idHelp)
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const planned = await broker.api.testEventTarget({ path: { target: id } });
        const delivery = await broker.api.getTargetDelivery(
          { path: { target: id, delivery: planned.id }, query: { wait: testWaitSeconds } },
          { timeoutMs: (testWaitSeconds + 15) * 1_000 },
        );
        if (delivery.state === 'delivered') {
          io.stdout.write(`${delivery.id} was taken: ${outcomeOf(delivery)}\n`);
          return;
        }
        throw new AppError(
          'event_target_failed',
          `the event target did not take ${delivery.id}: ${outcomeOf(delivery)}`,
          { detail: { target: id, delivery: delivery.id } },
        );
      }),
    );

function outcomeOf({ lastAttempt }: EventTargetDelivery): string {
  if (!lastAttempt) return 'not attempted yet';
  const { error, receipt, durationMs } = lastAttempt;
  return error ?? `${receipt ?? 'no receipt'} after ${durationMs} ms`;
}

const deliveriesCommand = (io: CliIo): Command =>
  new Command('deliveries')
    .description('what was or will be sent to an event target, newest first')
    .argument('<id>', idHelp)
    .addOption(new Option('--state <state>', 'only those in this state').choices(['pending', 'delivered', 'dead']))
    .option('--limit <n>', 'how many of the newest', positiveInt, 50)
    .addOption(outputOption())
    .action(
      (id: string, { state, limit, output }: { state?: EventTargetDelivery['state']; limit: number; output: Format }) =>
        withBroker(io, async (broker) => {
          const paint = paintFor(io.stdout, io.env);
          printListing(io, output, {
            items: await broker.all(
              (page) => broker.api.listTargetDeliveries({ path: { target: id }, query: { ...page, state } }),
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
          const again = await broker.api.replayTargetDelivery({ path: { target: id, delivery } });
          io.stdout.write(`${again.id} is sent again\n`);
          return;
        }
        let count = 0;
        let cursor: string | undefined;
        do {
          const body = cursor === undefined ? {} : { cursor };
          const page = await broker.api.replayEventTarget({ path: { target: id }, body });
          count += page.replayed;
          cursor = page.cursor;
        } while (cursor !== undefined);
        io.stdout.write(`${count} dead letters are sent again\n`);
      }),
    );
