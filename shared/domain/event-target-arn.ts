/** Names of what a tenant's events may be put into at AWS - an event bus, a queue - and of the role that allows it. Only names are judged here, not what they name. */

const partition = 'arn:aws(-us-gov|-cn)?';
const region = '[a-z]{2}(-[a-z]{2,12}){1,3}-[0-9]{1,2}';
const account = '[0-9]{12}';

/** An EventBridge bus other than a partner's, or an SQS queue. */
export const targetArnPattern = new RegExp(
  `^${partition}:(events:${region}:${account}:event-bus\\/[A-Za-z0-9._-]{1,256}|sqs:${region}:${account}:[A-Za-z0-9_-]{1,75}(\\.fifo)?)$`,
);

/** Every role that a broker may assume begins so: what its own rights are limited to. */
export const roleNamePrefix = 'isthmus-events-';
export const roleArnPattern = new RegExp(
  `^${partition}:iam::${account}:role\\/${roleNamePrefix}[A-Za-z0-9+=,.@_-]{1,49}$`,
);

export type TargetType = 'eventbridge' | 'sqs';

export interface TargetName {
  readonly type: TargetType;
  /** `aws`, `aws-us-gov` or `aws-cn`. */
  readonly partition: string;
  readonly region: string;
  readonly account: string;
  /** Of the bus or the queue. */
  readonly name: string;
}

/** Undefined: it is no ARN of a bus or a queue. */
export function parseTargetArn(arn: string): TargetName | undefined {
  if (!targetArnPattern.test(arn)) return undefined;
  const [, part = '', service, where = '', account = '', ...rest] = arn.split(':');
  const resource = rest.join(':');
  return service === 'events'
    ? { type: 'eventbridge', partition: part, region: where, account, name: resource.slice('event-bus/'.length) }
    : { type: 'sqs', partition: part, region: where, account, name: resource };
}

/** Partition and account of a role that a broker may assume; undefined for any other text. */
export function parseRoleArn(arn: string): { readonly partition: string; readonly account: string } | undefined {
  if (!roleArnPattern.test(arn)) return undefined;
  const [, part = '', , , account = ''] = arn.split(':');
  return { partition: part, account };
}

/** External id for the trust policy of the role. It is the tenant's own, so that no other tenant's target can use the role. */
export const externalIdOf = (tenant: string): string => `isthmus/${tenant}`;
