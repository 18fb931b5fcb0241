/** From what a function says it needs to the statements of its role. Plain data, so that a test can list all of them. */
import type { Access, CloudFunction } from '#functions/cloud-function.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import type { Names } from './names.ts';

export interface Statement {
  readonly sid: string;
  readonly actions: readonly string[];
  readonly resources: readonly string[];
}

export interface Reachable {
  readonly names: Names;
  /** API id of the WebSocket API and its stage. */
  readonly channel: { readonly apiId: string; readonly stageName: string };
  readonly tableStreamArn: string;
}

/** What each need means. Reads are strongly consistent item and partition reads: no scan, no index. */
const meanings: Readonly<Record<Access, (reach: Reachable) => Statement[]>> = {
  'table:read': ({ names }) => [
    {
      sid: 'ReadTable',
      actions: ['dynamodb:BatchGetItem', 'dynamodb:GetItem', 'dynamodb:Query'],
      resources: [names.tableArn],
    },
  ],
  // A transaction is allowed by the rights to its parts.
  'table:write': ({ names }) => [
    {
      sid: 'WriteTable',
      actions: ['dynamodb:ConditionCheckItem', 'dynamodb:DeleteItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem'],
      resources: [names.tableArn],
    },
  ],
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

const writesLog = (names: Names, part: Part): Statement => ({
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

/** The stack that a function is in, and the log group that it shares with the others there: one query finds a request. */
export type Part = 'api' | 'channel' | 'events';

/** By its trigger, then by its folder. */
export function partOf(fn: CloudFunction): Part {
  if (isAsynchronous(fn)) return 'events';
  return fn.file.startsWith('functions/channel/') ? 'channel' : 'api';
}

export const statementsOf = (fn: CloudFunction, reach: Reachable): Statement[] => [
  writesLog(reach.names, partOf(fn)),
  ...(isAsynchronous(fn) ? [sendsDeadLetters(reach.names, fn.name)] : []),
  ...fn.access.flatMap((need) => meanings[need](reach)),
];
