/** Sessions of roles of tenants: for one target each, restricted to writing to it, and kept until shortly before they end. */
import type { TargetName } from '#shared/domain/event-target-arn.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { TargetMessage } from '../../ports/event-target-sender.ts';
import type { Calling, Credentials } from './signed-call.ts';
import { element } from './sts-answer.ts';

/** The least that AWS gives. */
const sessionSeconds = 900;
const reserveMs = 120_000;
const kept = 200;

export class RoleRefused extends Error {
  override readonly name = 'RoleRefused';
}

export interface AssumedRoles {
  /** Throws `RoleRefused` with words for the owner of the target. */
  sessionFor(message: TargetMessage, target: TargetName, signal: AbortSignal): Promise<Credentials>;
}

export interface AssumedRolesOptions {
  readonly call: Calling;
  readonly clock: Pick<Clock, 'now'>;
  readonly region: () => Promise<string>;
  readonly principal: string;
  /** Of this broker, fresh each time. */
  readonly credentials: () => Promise<Credentials>;
}

/** Session policy: narrows the role to what one delivery needs. Encrypted queues need their key for each message. */
function sessionPolicy(arn: string, { type, partition, region, account }: TargetName): object {
  const Statement: object[] = [
    { Effect: 'Allow', Action: type === 'sqs' ? 'sqs:SendMessage' : 'events:PutEvents', Resource: arn },
  ];
  if (type === 'sqs') {
    const suffix = partition === 'aws-cn' ? 'amazonaws.com.cn' : 'amazonaws.com';
    Statement.push({
      Effect: 'Allow',
      Action: ['kms:Decrypt', 'kms:GenerateDataKey'],
      Resource: `arn:${partition}:kms:${region}:${account}:key/*`,
      Condition: { StringEquals: { 'kms:ViaService': `sqs.${region}.${suffix}` } },
    });
  }
  return { Version: '2012-10-17', Statement };
}

interface Session {
  readonly credentials: Credentials;
  readonly until: number;
}

export function createAssumedRoles(options: AssumedRolesOptions): AssumedRoles {
  const { call, clock, principal } = options;
  const sessions = new Map<string, Session>();

  async function assume(message: TargetMessage, target: TargetName, signal: AbortSignal): Promise<Session> {
    const { roleArn, externalId, tenant, arn } = message;
    const { partition } = target;
    const form = new URLSearchParams({
      Action: 'AssumeRole',
      Version: '2011-06-15',
      RoleArn: roleArn,
      RoleSessionName: `isthmus-${tenant}`.slice(0, 64),
      ExternalId: externalId,
      DurationSeconds: String(sessionSeconds),
      Policy: JSON.stringify(sessionPolicy(arn, target)),
    });
    const [region, credentials] = await Promise.all([options.region(), options.credentials()]);
    const { status, text } = await call(
      { service: 'sts', region, partition, body: form.toString(), credentials },
      signal,
    );
    if (status !== 200) {
      const code = element(text, 'Code') ?? `status ${status}`;
      throw new RoleRefused(
        `the role cannot be assumed (${code}); it has to exist and to trust ${principal} with external ID ${externalId}`,
      );
    }
    const accessKeyId = element(text, 'AccessKeyId');
    const secretAccessKey = element(text, 'SecretAccessKey');
    const sessionToken = element(text, 'SessionToken');
    if (accessKeyId === undefined || secretAccessKey === undefined || sessionToken === undefined) {
      throw new RoleRefused('AWS gave no session for the role; it will be tried again');
    }
    return {
      credentials: { accessKeyId, secretAccessKey, sessionToken },
      until: clock.now() + sessionSeconds * 1_000 - reserveMs,
    };
  }

  return {
    async sessionFor(message, target, signal) {
      const name = [message.externalId, message.roleArn, message.arn].join(' ');
      const known = sessions.get(name);
      if (known !== undefined && known.until > clock.now()) return known.credentials;
      sessions.delete(name);
      const session = await assume(message, target, signal);
      const [oldest] = sessions.keys();
      if (sessions.size >= kept && oldest !== undefined) sessions.delete(oldest);
      sessions.set(name, session);
      return session.credentials;
    },
  };
}
