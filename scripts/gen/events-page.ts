/** docs/events.md: every event type with its data and an example, and how webhooks and event targets get them. */
import * as z from 'zod';
import { type CatalogueEntry, catalogue } from '#control/events/catalogue.ts';
import { cloudEventOf, type DeliveredType, testType, typeName } from '#control/events/cloud-event.ts';
import { failingLimitMs, retryDelaysMs, retryJitter } from '#control/webhooks/schedule.ts';
import { code, generatedNote, page, table } from './markdown.ts';

interface Member {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly items?: Member;
  readonly additionalProperties?: Member | boolean;
  readonly description?: string;
}

function typeText(member: Member): string {
  if (member.enum) return member.enum.map(code).join(', ');
  if (member.format === 'date-time') return 'time';
  if (member.items) return `list of ${typeText(member.items)}`;
  if (typeof member.additionalProperties === 'object') return `map to ${typeText(member.additionalProperties)}`;
  return member.type ?? 'any';
}

function dataTable({ data }: CatalogueEntry): string {
  const { properties = {}, required = [] } = z.toJSONSchema(data) as {
    properties?: Record<string, Member>;
    required?: string[];
  };
  const rows = Object.entries(properties).map(([name, member]) => [
    code(name),
    typeText(member),
    required.includes(name) ? 'always' : 'sometimes',
    member.description ?? '',
  ]);
  return rows.length === 0 ? 'No data.' : table(['data', 'type', 'present', 'meaning'], rows);
}

export const exampleOf = (type: DeliveredType): object =>
  cloudEventOf(
    {
      id: 'ev_06f0example0000000000000001',
      stream: 'acme',
      type,
      subject: catalogue[type].subject,
      at: Date.UTC(2026, 0, 1),
      data: catalogue[type].example,
    },
    { url: 'https://broker.example.com' },
  );

function section([type, entry]: readonly [string, CatalogueEntry]): string {
  return page(
    `### ${typeName(type)}`,
    entry.meaning,
    dataTable(entry),
    `\`\`\`json\n${JSON.stringify(exampleOf(type as DeliveredType), null, 2)}\n\`\`\``,
  ).trimEnd();
}

function pause(ms: number): string {
  const [unit, name] = ms < 60_000 ? [1_000, 's'] : ms < 3_600_000 ? [60_000, 'min'] : [3_600_000, 'h'];
  return `${ms / unit} ${name}`;
}

export function eventsPage(): string {
  const all = Object.entries(catalogue);
  const hours = retryDelaysMs.reduce((sum, ms) => sum + ms, 0) / 3_600_000;
  return page(
    generatedNote('control/events/catalogue.ts and control/webhooks/schedule.ts'),
    '# Events',
    'What happens to a tenant is told as CloudEvents 1.0: in the feed (`GET /v1/events`, `isthmus get events`), which keeps 24 hours, at webhooks, and in your own event buses and queues at AWS. The type ends in a version; members may be added to the data of a version, a change that readers could not bear gets a new one. [reference/events.json](reference/events.json) has the JSON Schema and an example of every type, for programs.',
    table(
      ['type', 'meaning'],
      all.map(([type, { meaning }]) => [`[${code(typeName(type))}](#${typeName(type).replaceAll('.', '')})`, meaning]),
    ),
    '## Webhooks',
    'A webhook gets a POST for each event of the types it asks for (`*`, one type, or a group such as `dev.isthmus.peering.*`), with the CloudEvent as the body (`application/cloudevents+json`), signed as [Standard Webhooks](https://www.standardwebhooks.com) says:',
    table(
      ['header', 'value'],
      [
        ['`webhook-id`', 'id of the event, the same at every attempt: what was seen before is to be ignored'],
        ['`webhook-timestamp`', 'seconds since 1970, of this attempt: refuse what is older than five minutes'],
        [
          '`webhook-signature`',
          '`v1,BASE64`, the HMAC-SHA256 of `ID.TIMESTAMP.BODY` under the secret (base64 after `whsec_`); two of them, separated by a space, while the secret is being rotated',
        ],
      ],
    ),
    'Each event is delivered at least once; no order is promised. Only an answer from 200 to 299 within 10 seconds counts. Redirects are not followed. Of the body of an answer the first 1,024 bytes are kept, for you to look at. Addresses that are not public are refused, when the webhook is made and again for each connection; the broker connects to the very address that it checked.',
    `After a failure the next attempts come after ${retryDelaysMs.map(pause).join(', ')}, each longer or shorter by up to ${retryJitter * 100} %, ${Math.round(hours)} hours in all. The hosted broker looks once a minute what is due, so there an attempt may come up to a minute later. Then the delivery is a dead letter: it is kept for 30 days, listed by \`isthmus webhook deliveries ID --state dead\` and sent again by \`isthmus webhook replay\`. A webhook at which every attempt has failed for ${failingLimitMs / 86_400_000} days, or that answers 410, is disabled, which is an event (${code(typeName('webhook.disabled'))}); its pending deliveries become dead letters, and events are not sent to it until it is enabled again.`,
    `\`isthmus webhook test ID\` sends ${code(typeName(testType))}, once.`,
    '## Event targets',
    'An event target is an EventBridge bus or an SQS queue of your own. The broker puts each event of the types it asks for there, as a role of your account; you give it no key, and it gives you none. What is said above about retries, dead letters, replay and being disabled holds for event targets as well (`isthmus event-target …`), and so does the limit of 10 seconds.',
    '1. `isthmus event-target create ARN --role arn:aws:iam::ACCOUNT:role/isthmus-events-NAME`. The name of the role has to begin with `isthmus-events-`, and its account has to be that of the bus or queue: the broker may assume no other role.',
    '2. `isthmus event-target policies ID` prints the two policies of the role. It trusts the broker for the external ID `isthmus/TENANT` only, so that no other tenant of the broker can have events put there, and it may write to this one bus or queue. A queue that is encrypted with a key of your own needs `kms:GenerateDataKey` and `kms:Decrypt` on that key as well.',
    `3. \`isthmus event-target test ID\` sends ${code(typeName(testType))} and says what AWS answered.`,
    table(
      ['', 'EventBridge', 'SQS'],
      [
        ['the CloudEvent', '`detail`', 'the body of the message'],
        ['its type', '`detail-type`', 'the message attribute `type`'],
        [
          'besides',
          '`source` is `isthmus`, `time` is that of the event',
          'the attributes `id`, `subject`, `content-type`',
        ],
        [
          'the same event twice',
          'has the same `detail.id`',
          'has the same `id`; a FIFO queue drops it within five minutes',
        ],
        ['order', 'not promised', 'not promised; in a FIFO queue the group is the subject of the event'],
      ],
    ),
    'A session policy limits the broker to this one bus or queue, also when the role may do more. An event that AWS never accepts (too large, malformed) becomes a dead letter at once.',
    'A broker of your own (`isthmus broker serve`) has event targets when it is started with `--aws-principal ARN`, the identity that its process has at AWS by the usual chain of credentials; roles have to trust that one.',
    '## Catalogue',
    ...all.map(section),
  );
}
