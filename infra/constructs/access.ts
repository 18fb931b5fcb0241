/** From what a function says it needs to the statements of its role. Plain data, so that a test can list all of them. */
import type { Access, CloudFunction } from '#functions/cloud-function.ts';
import { type TableRights, tenantItself } from '#functions/table-rights.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import type { Names } from './names.ts';

export interface Statement {
  readonly sid: string;
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  /** Of the table's items: patterns of their partition keys, and those among them that are not meant. */
  readonly leadingKeys?: readonly string[];
  readonly otherKeys?: readonly string[];
}

export interface Reachable {
  readonly names: Names;
  /** API id of the WebSocket API and its stage. */
  readonly channel: { readonly apiId: string; readonly stageName: string };
  readonly tableStreamArn: string;
}

/** Rights to partitions of these kinds. `t/*` would mean everything of every tenant, so the tenant's own partition has a statement of its own. */
function onPartitions(
  sid: string,
  actions: readonly string[],
  kinds: readonly string[],
  { tableArn }: Names,
): Statement[] {
  const plain = kinds.filter((kind) => kind !== tenantItself);
  const resources = [tableArn];
  return [
    ...(plain.length > 0 ? [{ sid, actions, resources, leadingKeys: plain }] : []),
    ...(kinds.includes(tenantItself)
      ? [{ sid: `${sid}OfTenants`, actions, resources, leadingKeys: [tenantItself], otherKeys: [`${tenantItself}/*`] }]
      : []),
  ];
}

/** What each need means. Reads are item and partition reads: no scan, no index. */
const meanings: Readonly<Record<Access, (reach: Reachable, table: TableRights) => Statement[]>> = {
  'table:read': ({ names }, { read }) => onPartitions('Read', ['dynamodb:GetItem', 'dynamodb:Query'], read, names),
  // A transaction is allowed by the rights to its parts.
  'table:write': ({ names }, { write }) =>
    onPartitions(
      'Write',
      ['dynamodb:ConditionCheckItem', 'dynamodb:DeleteItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem'],
      write,
      names,
    ),
  'stream:read': ({ tableStreamArn }) => [
    {
      sid: 'ReadStream',
      actions: ['dynamodb:DescribeStream', 'dynamodb:GetRecords', 'dynamodb:GetShardIterator', 'dynamodb:ListStreams'],
      resources: [tableStreamArn],
    },
  ],
  'bus:publish': ({ names }) => [{ sid: 'Publish', actions: ['events:PutEvents'], resources: [names.busArn] }],
  'channel:ring': ({ names, channel }) => [
    {
      sid: 'Ring',
      actions: ['execute-api:ManageConnections'],
      resources: [names.arn('execute-api', `${channel.apiId}/${channel.stageName}/*/@connections/*`)],
    },
  ],
  'box:open': ({ names }) => [
    { sid: 'ReadKeyring', actions: ['secretsmanager:GetSecretValue'], resources: [names.boxSecretArn] },
  ],
  'webhooks:post': () => [],
  // Whose role it is and whether it trusts this broker for this tenant, its own policy says: by the external ID.
  'event-targets:send': ({ names }) => [
    { sid: 'AssumeTenantRoles', actions: ['sts:AssumeRole'], resources: [names.tenantRolesArn] },
  ],
};

const writesLog = (names: Names, part: LogPart): Statement => ({
  sid: 'WriteLog',
  actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
  resources: [`${names.logGroupArn(part)}:*`],
});

const sendsDeadLetters = (names: Names, name: string): Statement => ({
  sid: 'SendDeadLetters',
  actions: ['sqs:SendMessage'],
  resources: [names.deadLettersArn(name)],
});

/** An asynchronous function has no caller to answer: it can only leave a dead letter. */
export function isAsynchronous({ trigger }: CloudFunction): boolean {
  switch (trigger.kind) {
    case 'stream':
    case 'event':
    case 'schedule':
      return true;
    case 'http':
    case 'no-route':
    case 'socket':
      return false;
    default:
      return unreachable(trigger);
  }
}

/** What functions share a log group: one query finds a request. */
export const logParts = ['api', 'channel', 'events'] as const;
export type LogPart = (typeof logParts)[number];

/** The stack that a function is in. The REST API is three: with version, alias and deployment group a function is eight resources, and a stack holds 500. */
export const parts = ['api-peerings', 'api-receivers', 'api-tenants', 'channel', 'events'] as const;
export type Part = (typeof parts)[number];

export const logPartOf = (part: Part): LogPart => (part === 'channel' || part === 'events' ? part : 'api');

/** By its trigger, then by its folder. */
export function partOf(fn: CloudFunction): Part {
  if (isAsynchronous(fn)) return 'events';
  if (fn.file.startsWith('functions/channel/')) return 'channel';
  const [, folder = ''] = /^functions\/api\/([^/.]+)\//.exec(fn.file) ?? [];
  if (/^(webhooks|event-targets)$/.test(folder)) return 'api-receivers';
  return /^(approval-rules|clusters|directory|invitations|join-tokens|peerings|requests)$/.test(folder)
    ? 'api-peerings'
    : 'api-tenants';
}

export const statementsOf = (fn: CloudFunction, reach: Reachable): Statement[] => [
  writesLog(reach.names, logPartOf(partOf(fn))),
  ...(isAsynchronous(fn) ? [sendsDeadLetters(reach.names, fn.name)] : []),
  ...fn.access.flatMap((need) => meanings[need](reach, fn.table)),
];

/** IAM's condition for a statement's partitions. A request without a partition key, a scan, matches none. */
export const conditionsOf = ({
  leadingKeys,
  otherKeys,
}: Statement): Readonly<Record<string, Record<string, unknown>>> =>
  leadingKeys === undefined
    ? {}
    : {
        'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [...leadingKeys] },
        ...(otherKeys && { 'ForAllValues:StringNotLike': { 'dynamodb:LeadingKeys': [...otherKeys] } }),
        Null: { 'dynamodb:LeadingKeys': 'false' },
      };
