/**
 * Physical names and the ARNs that follow from them. Stacks find each other by these instead of by exports, so that one can be deployed,
 * changed or replaced without the others in its way. Only what AWS itself names (API ids, the stream) travels between stacks.
 */
import { roleNamePrefix } from '#shared/domain/event-target-arn.ts';
import type { StageSettings } from '../stages.ts';

/** Where a stage is deployed: tokens in a template, words on a page. */
export interface Place {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
}

/** What API, bus, stream and schedule call: the version that a release has come to. */
export const liveAlias = 'live';

export interface Names {
  readonly arn: (service: string, rest: string) => string;
  readonly table: string;
  readonly tableArn: string;
  readonly bus: string;
  readonly busArn: string;
  /** The keyring for tenants' secrets. */
  readonly boxSecret: string;
  /** Secrets Manager adds six characters of its own to a name. */
  readonly boxSecretArn: string;
  /** Roles of tenants, in any account. */
  readonly tenantRolesArn: string;
  /** Whom those roles trust: this account. */
  readonly principal: string;
  readonly function: (name: string) => string;
  readonly functionArn: (name: string) => string;
  /** A role is called as its function. */
  readonly functionRoleArn: (name: string) => string;
  /** Of the alias that every function is called by. */
  readonly liveArn: (name: string) => string;
  /** The application whose deployments shift traffic to new versions, and the role that does it. */
  readonly releases: string;
  readonly alarmArn: (name: string) => string;
  readonly releaseRole: string;
  readonly releaseRoleArn: string;
  readonly logGroup: (name: string) => string;
  readonly logGroupArn: (name: string) => string;
  readonly deadLetters: (edge: string) => string;
  /** Namespace of the metrics that are counted from logs. */
  readonly metrics: string;
  readonly deadLettersArn: (edge: string) => string;
  /** For everything else, `isthmus-production-…`. */
  readonly of: (name: string) => string;
}

export function namesOf(
  { name: stage, restoredTable }: Pick<StageSettings, 'name' | 'restoredTable'>,
  { partition, region, account }: Place,
): Names {
  const arn = (service: string, rest: string): string => `arn:${partition}:${service}:${region}:${account}:${rest}`;
  const of = (name: string): string => `isthmus-${stage}-${name}`;
  const table = restoredTable?.name ?? `isthmus-${stage}`;
  const bus = `isthmus-${stage}`;
  const logGroup = (name: string): string => `/isthmus/${stage}/${name}`;
  const deadLetters = (edge: string): string => of(`${edge}-dead`);
  return {
    arn,
    table,
    tableArn: arn('dynamodb', `table/${table}`),
    bus,
    busArn: arn('events', `event-bus/${bus}`),
    boxSecret: of('keyring'),
    boxSecretArn: arn('secretsmanager', `secret:${of('keyring')}-??????`),
    tenantRolesArn: `arn:${partition}:iam::*:role/${roleNamePrefix}*`,
    principal: `arn:${partition}:iam::${account}:root`,
    function: of,
    functionArn: (name) => arn('lambda', `function:${of(name)}`),
    functionRoleArn: (name) => `arn:${partition}:iam::${account}:role/${of(name)}`,
    liveArn: (name) => arn('lambda', `function:${of(name)}:${liveAlias}`),
    releases: of('functions'),
    alarmArn: (name) => arn('cloudwatch', `alarm:${of(name)}`),
    releaseRole: of('releases'),
    releaseRoleArn: `arn:${partition}:iam::${account}:role/${of('releases')}`,
    logGroup,
    logGroupArn: (name) => arn('logs', `log-group:${logGroup(name)}`),
    deadLetters,
    metrics: `Isthmus/${stage}`,
    deadLettersArn: (edge) => arn('sqs', deadLetters(edge)),
    of,
  };
}
