/** Sessions of a function's own role for one tenant each: the tag is what the role's policy fills its patterns with. A session reads no other tenant. */
import type { Backoff } from '../dynamodb/backoff.ts';
import type { Calling, Credentials } from './signed-call.ts';
import { element } from './sts-answer.ts';

interface SessionCredentials extends Required<Credentials> {
  readonly expiration: Date;
}

/** Rejects when AWS gives none. Nothing is kept here: the AWS client keeps what it got until shortly before it expires. */
export type TenantSessions = (tenant: string) => Promise<SessionCredentials>;

export interface TenantSessionOptions {
  readonly call: Calling;
  readonly roleArn: string;
  readonly backoff: Backoff;
  readonly region: () => Promise<string>;
  /** Of the function itself. */
  readonly credentials: () => Promise<Credentials>;
}

/** The most that a role gets which assumes itself. */
const sessionSeconds = 3_600;
const attempts = 3;
const attemptMs = 2_000;

export function createTenantSessions(options: TenantSessionOptions): TenantSessions {
  const { call, roleArn, backoff } = options;
  const partition = roleArn.split(':')[1] ?? 'aws';

  async function ask(
    tenant: string,
  ): Promise<SessionCredentials | { readonly why: string; readonly isFinal: boolean }> {
    const form = new URLSearchParams({
      Action: 'AssumeRole',
      Version: '2011-06-15',
      RoleArn: roleArn,
      RoleSessionName: tenant.slice(0, 64).padEnd(2, '-'),
      DurationSeconds: String(sessionSeconds),
      'Tags.member.1.Key': 'tenant',
      'Tags.member.1.Value': tenant,
    });
    const [region, credentials] = await Promise.all([options.region(), options.credentials()]);
    const { status, text } = await call(
      { service: 'sts', region, partition, body: form.toString(), credentials },
      AbortSignal.timeout(attemptMs),
    );
    const [accessKeyId, secretAccessKey, sessionToken, expiration] = [
      'AccessKeyId',
      'SecretAccessKey',
      'SessionToken',
      'Expiration',
    ].map((name) => element(text, name));
    if (status === 200 && accessKeyId && secretAccessKey && sessionToken && expiration)
      return { accessKeyId, secretAccessKey, sessionToken, expiration: new Date(expiration) };
    const code = element(text, 'Code') ?? `status ${status}`;
    return { why: code, isFinal: /^AccessDenied|^Validation/.test(code) };
  }

  return async (tenant) => {
    for (let attempt = 1; ; attempt += 1) {
      const answer = await ask(tenant).catch((error: unknown) => ({ why: String(error), isFinal: false }));
      if ('accessKeyId' in answer) return answer;
      if (answer.isFinal || attempt === attempts)
        throw new Error(`AWS gave no session of ${roleArn} for tenant ${tenant}: ${answer.why}`);
      await backoff(attempt);
    }
  };
}
