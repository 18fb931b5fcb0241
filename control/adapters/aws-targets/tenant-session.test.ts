import { expect, test } from 'vitest';
import type { AwsAnswer, AwsCall } from './signed-call.ts';
import { createTenantSessions } from './tenant-session.ts';

const roleArn = 'arn:aws:iam::123456789012:role/isthmus-dev-api-audit-list';
const given: AwsAnswer = {
  status: 200,
  text: '<AccessKeyId>ASIAACME</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2026-01-01T01:00:00Z</Expiration>',
};
const refusal = (status: number, code: string): AwsAnswer => ({
  status,
  text: `<ErrorResponse><Error><Code>${code}</Code></Error></ErrorResponse>`,
});

/** What AWS answers, one after the other; an error is a broken connection. */
function sessionsWith(...answers: readonly (AwsAnswer | Error)[]) {
  const calls: AwsCall[] = [];
  const waited: number[] = [];
  const sessions = createTenantSessions({
    call: async (call) => {
      const answer = answers[calls.push(call) - 1] ?? new Error('asked too often');
      if (answer instanceof Error) throw answer;
      return answer;
    },
    roleArn,
    backoff: async (attempt) => void waited.push(attempt),
    region: async () => 'eu-central-1',
    credentials: async () => ({ accessKeyId: 'OWN', secretAccessKey: 'own' }),
  });
  return { sessions, calls, waited };
}

test('a session is of the function’s own role, for an hour, with the tenant as its one tag', async () => {
  const { sessions, calls } = sessionsWith(given);
  expect(await sessions('acme')).toEqual({
    accessKeyId: 'ASIAACME',
    secretAccessKey: 's',
    sessionToken: 't',
    expiration: new Date('2026-01-01T01:00:00Z'),
  });
  expect(calls).toMatchObject([
    { service: 'sts', region: 'eu-central-1', partition: 'aws', credentials: { accessKeyId: 'OWN' } },
  ]);
  expect(Object.fromEntries(new URLSearchParams(calls[0]?.body))).toEqual({
    Action: 'AssumeRole',
    Version: '2011-06-15',
    RoleArn: roleArn,
    RoleSessionName: 'acme',
    DurationSeconds: '3600',
    'Tags.member.1.Key': 'tenant',
    'Tags.member.1.Value': 'acme',
  });
});

test('what passes is tried again, three times in all', async () => {
  const { sessions, waited } = sessionsWith(refusal(400, 'Throttling'), new Error('reset'), given);
  await expect(sessions('acme')).resolves.toMatchObject({ accessKeyId: 'ASIAACME' });
  expect(waited).toEqual([1, 2]);
  const busy = sessionsWith(refusal(503, 'ServiceUnavailable'), refusal(400, 'Throttling'), refusal(400, 'Throttling'));
  await expect(busy.sessions('acme')).rejects.toThrow(`no session of ${roleArn} for tenant acme: Throttling`);
  expect(busy.calls).toHaveLength(3);
});

test('a refusal is final', async () => {
  const { sessions, calls } = sessionsWith(refusal(403, 'AccessDenied'));
  await expect(sessions('acme')).rejects.toThrow('AccessDenied');
  expect(calls).toHaveLength(1);
});
