/** isthmus event-target: which buses and queues of this tenant at AWS get its events. */
import { Command } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import type { CliIo } from '#cli/output/io.ts';
import type { EventTarget, EventTargetDelivery } from '#shared/schema/api/event-targets.ts';
import { collect } from './options.ts';
import { type Receiver, receiverCommands } from './receiver.ts';

export function eventTargetCommand(io: CliIo): Command {
  const command = new Command('event-target').addCommand(createCommand(io)).addCommand(policiesCommand(io));
  for (const one of receiverCommands(io, targets)) command.addCommand(one);
  return command;
}

const idHelp = 'id of the event target, et_…';

const targets: Receiver<EventTarget, EventTargetDelivery> = {
  article: 'an',
  noun: 'event target',
  resource: 'event-target',
  idHelp,
  listHelp: 'list event targets',
  make: 'isthmus event-target create ARN --role ROLE',
  address: { head: 'arn', cell: ({ arn }) => arn },
  outcomeOf,
  failed: { code: 'event_target_failed', field: 'target' },
  list: (api, query) => api.listEventTargets({ query }),
  remove: (api, target) => api.deleteEventTarget({ path: { target } }),
  enable: (api, target, enabled) => api.changeEventTarget({ path: { target }, body: { enabled } }),
  test: (api, target) => api.testEventTarget({ path: { target } }),
  settled: (api, target, delivery, wait, options) =>
    api.getTargetDelivery({ path: { target, delivery }, query: { wait } }, options),
  deliveries: (api, target, query) => api.listTargetDeliveries({ path: { target }, query }),
  replay: (api, target, delivery) => api.replayTargetDelivery({ path: { target, delivery } }),
  replayDead: (api, target, body) => api.replayEventTarget({ path: { target }, body }),
};

function outcomeOf({ lastAttempt }: EventTargetDelivery): string {
  if (!lastAttempt) return 'not attempted yet';
  const { error, receipt, durationMs } = lastAttempt;
  return error ?? `${receipt ?? 'no receipt'} after ${durationMs} ms`;
}

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
function policiesOf({ arn, type, principal, externalId }: EventTarget): object {
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
