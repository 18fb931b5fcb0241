/** From what a function says it needs to the statements of its role. Plain data, so that a test can list all of them. */
import type { Access, CloudFunction } from '#functions/cloud-function.ts';
import { ofTenant, type TableRights, tenantItself } from '#functions/table-rights.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import type { Names } from './names.ts';

export interface Statement {
  readonly sid: string;
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  /** Of the table's items: patterns of their partition keys, and those among them that are not meant. */
  readonly leadingKeys?: readonly string[];
  readonly otherKeys?: readonly string[];
  /** Whether it is for a session of a tenant, or for a function that has none yet. Undefined: both. */
  readonly inSession?: boolean;
}

const tenantTag = 'aws:PrincipalTag/tenant';

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

/** With sessions: of all tenants what is needed to know the caller; then the caller's tenant alone, which IAM puts into the patterns. */
function onTable(
  kind: keyof TableRights,
  actions: readonly string[],
  { access, signIn, table }: CloudFunction,
  names: Names,
): Statement[] {
  const sid = kind === 'read' ? 'Read' : 'Write';
  if (!access.includes('table:session')) return onPartitions(sid, actions, table[kind], names);
  return [
    ...onPartitions(`${sid}ToSignIn`, actions, signIn[kind], names).map((one) => ({ ...one, inSession: false })),
    // A condition without patterns is none that IAM takes.
    ...(table[kind].length === 0
      ? []
      : [
          {
            sid: `${sid}Own`,
            actions,
            resources: [names.tableArn],
            leadingKeys: ofTenant(table[kind], `\${${tenantTag}}`),
            inSession: true,
          },
        ]),
  ];
}

/** IAM cannot tell the connections of agents from those of portals. */
const onConnections = ({ names, channel }: Reachable): Statement[] => [
  {
    sid: 'Ring',
    actions: ['execute-api:ManageConnections'],
    resources: [names.arn('execute-api', `${channel.apiId}/${channel.stageName}/*/@connections/*`)],
  },
];

/** What each need means. Reads are item and partition reads: no scan, no index. */
const meanings: Readonly<Record<Access, (reach: Reachable, fn: CloudFunction) => Statement[]>> = {
  'table:read': ({ names }, fn) =>
    onTable('read', ['dynamodb:BatchGetItem', 'dynamodb:GetItem', 'dynamodb:Query'], fn, names),
  // A transaction is allowed by the rights to its parts.
  'table:write': ({ names }, fn) =>
    onTable(
      'write',
      ['dynamodb:ConditionCheckItem', 'dynamodb:DeleteItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem'],
      fn,
      names,
    ),
  'table:session': ({ names }, { name }) => [
    { sid: 'OwnSessions', actions: ['sts:AssumeRole', 'sts:TagSession'], resources: [names.functionRoleArn(name)] },
  ],
  'stream:read': ({ tableStreamArn }) => [
    {
      sid: 'ReadStream',
      actions: ['dynamodb:DescribeStream', 'dynamodb:GetRecords', 'dynamodb:GetShardIterator', 'dynamodb:ListStreams'],
      resources: [tableStreamArn],
    },
  ],
  'bus:publish': ({ names }) => [{ sid: 'Publish', actions: ['events:PutEvents'], resources: [names.busArn] }],
  'channel:ring': onConnections,
  'listeners:tell': onConnections,
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
export type Part = 'api-peerings' | 'api-receivers' | 'api-tenants' | 'channel' | 'events';

const logPartOf = (part: Part): LogPart => (part === 'channel' || part === 'events' ? part : 'api');

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
  ...fn.access.flatMap((need) => meanings[need](reach, fn)),
];

/** IAM's condition for a statement's partitions. A request without a partition key, a scan, matches none. */
export const conditionsOf = ({
  leadingKeys,
  otherKeys,
  inSession,
}: Statement): Readonly<Record<string, Record<string, unknown>>> =>
  leadingKeys === undefined
    ? {}
    : {
        'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [...leadingKeys] },
        ...(otherKeys && { 'ForAllValues:StringNotLike': { 'dynamodb:LeadingKeys': [...otherKeys] } }),
        Null: {
          'dynamodb:LeadingKeys': 'false',
          ...(inSession !== undefined && { [tenantTag]: String(!inSession) }),
        },
      };
