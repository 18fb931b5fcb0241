/** Against a server that plays the three services and checks every signature as they do: what is sent, as whom, and what becomes of each answer. */
import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import type { EventTargetSender, TargetMessage } from '../../ports/event-target-sender.ts';
import { createAwsTargets } from './aws-targets.ts';

interface LastSeen {
  readonly service: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

const own = { accessKeyId: 'AKIDBROKER', secretAccessKey: 'broker-secret' };
const session = { accessKeyId: 'ASIASESSION', secretAccessKey: 'session/secret+', sessionToken: 'token==' };
const secrets: Readonly<Record<string, string>> = {
  [own.accessKeyId]: own.secretAccessKey,
  [session.accessKeyId]: session.secretAccessKey,
};
const assumed = `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>${session.accessKeyId}</AccessKeyId><SecretAccessKey>${session.secretAccessKey}</SecretAccessKey><SessionToken>${session.sessionToken}</SessionToken></Credentials></AssumeRoleResult></AssumeRoleResponse>`;
const taken: Readonly<Record<string, { status: number; text: string }>> = {
  sts: { status: 200, text: assumed },
  events: { status: 200, text: '{"FailedEntryCount":0,"Entries":[{"EventId":"e-1"}]}' },
  sqs: { status: 200, text: '{"MessageId":"m-1"}' },
};

let server: Server;
let sender: EventTargetSender;
let answers: Record<string, { status: number; text: string } | undefined>;
const clock = new ManualClock();
const heard: LastSeen[] = [];

/** The calculation of Signature Version 4, once more. */
function isSigned({ headers, body }: LastSeen): boolean {
  const [, keyId = '', day = '', region = '', service = '', names = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d+)\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$/.exec(
      headers.authorization ?? '',
    ) ?? [];
  const sha = (text: string): string => createHash('sha256').update(text).digest('hex');
  const mac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
  const canonical = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const request = ['POST', '/', '', canonical.join(''), names, sha(body)].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha(request)].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(mac, `AWS4${secrets[keyId]}`);
  return names.split(';').includes('host') && mac(key, text).toString('hex') === signature;
}

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      const service = /\/(sts|events|sqs)\/aws4_request/.exec(request.headers.authorization ?? '')?.[1] ?? '';
      heard.push({ service, headers: request.headers, body });
      const answer = answers[service];
      if (answer) response.writeHead(answer.status).end(answer.text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  heard.length = 0;
  answers = { ...taken };
  sender = createAwsTargets({
    clock,
    principal: 'arn:aws:iam::210987654321:root',
    region: async () => 'eu-west-1',
    credentials: async () => own,
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    timeoutMs: 1_000,
  });
});

const bus = 'arn:aws:events:eu-central-1:123456789012:event-bus/ops';
const queue = 'arn:aws:sqs:eu-central-1:123456789012:ops';
const message = (over: Partial<TargetMessage> = {}): TargetMessage => ({
  tenant: 'acme',
  arn: bus,
  roleArn: 'arn:aws:iam::123456789012:role/isthmus-events-ops',
  externalId: 'isthmus/acme',
  event: { id: 'ev_1', type: 'dev.isthmus.peering.requested.v1', subject: 'peering/pe_1', at: 1_700_000_000_500 },
  body: '{"specversion":"1.0","id":"ev_1","subject":"ümlaut"}',
  ...over,
});
const sentTo = (service: string) => heard.filter((one) => one.service === service);
const formOf = (i = 0) => Object.fromEntries(new URLSearchParams(sentTo('sts')[i]?.body));

describe('a role', () => {
  test('is assumed as the broker, in its Region, with the external ID and for this one bus only', async () => {
    expect(await sender.send(message())).toEqual({ status: 200, text: 'e-1' });
    const { Policy = '', ...form } = formOf();
    expect(form).toMatchObject({
      Action: 'AssumeRole',
      RoleArn: 'arn:aws:iam::123456789012:role/isthmus-events-ops',
      ExternalId: 'isthmus/acme',
      RoleSessionName: 'isthmus-acme',
    });
    expect(JSON.parse(Policy).Statement).toEqual([{ Effect: 'Allow', Action: 'events:PutEvents', Resource: bus }]);
    expect(sentTo('sts')[0]?.headers.authorization).toContain('AKIDBROKER/20260101/eu-west-1/sts');
    expect(heard.map(isSigned)).toEqual([true, true]);
  });

  test('of a queue may use the keys that encrypt it, through SQS only', async () => {
    await sender.send(message({ arn: queue }));
    expect(JSON.parse(formOf().Policy ?? '').Statement).toEqual([
      { Effect: 'Allow', Action: 'sqs:SendMessage', Resource: queue },
      expect.objectContaining({
        Action: ['kms:Decrypt', 'kms:GenerateDataKey'],
        Condition: { StringEquals: { 'kms:ViaService': 'sqs.eu-central-1.amazonaws.com' } },
      }),
    ]);
  });

  test('is assumed once for as long as its session lives, and apart for each tenant and target', async () => {
    await sender.send(message());
    await sender.send(message());
    expect(sentTo('sts')).toHaveLength(1);
    await sender.send(message({ arn: queue }));
    await sender.send(message({ tenant: 'bolt', externalId: 'isthmus/bolt' }));
    expect(sentTo('sts').map((_, i) => formOf(i).ExternalId)).toEqual(['isthmus/acme', 'isthmus/acme', 'isthmus/bolt']);
    clock.advance(15 * 60_000);
    await sender.send(message());
    expect(sentTo('sts')).toHaveLength(4);
  });

  test('that does not trust the broker is an error that says whom to trust, and nothing is sent', async () => {
    answers.sts = { status: 403, text: '<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>' };
    expect(await sender.send(message())).toEqual({
      error:
        'the role cannot be assumed (AccessDenied); it has to exist and to trust arn:aws:iam::210987654321:root with external ID isthmus/acme',
    });
    expect(sentTo('events')).toEqual([]);
    answers.sts = taken.sts;
    expect(await sender.send(message())).toEqual({ status: 200, text: 'e-1' });
  });
});

describe('a bus', () => {
  test('gets one entry with the CloudEvent as its detail, as the session', async () => {
    await sender.send(message());
    const [put] = sentTo('events');
    expect(put?.headers).toMatchObject({ 'x-amz-target': 'AWSEvents.PutEvents', 'x-amz-security-token': 'token==' });
    expect(put?.headers.authorization).toContain('ASIASESSION/20260101/eu-central-1/events');
    expect(JSON.parse(put?.body ?? '')).toEqual({
      Entries: [
        {
          EventBusName: bus,
          Source: 'isthmus',
          DetailType: 'dev.isthmus.peering.requested.v1',
          Detail: message().body,
          Time: 1_700_000_000,
        },
      ],
    });
  });

  test.each([
    {
      what: 'that took nothing though it answered 200',
      answer: {
        status: 200,
        text: '{"FailedEntryCount":1,"Entries":[{"ErrorCode":"ThrottlingException","ErrorMessage":"slow"}]}',
      },
      outcome: { error: 'ThrottlingException: slow' },
    },
    {
      what: 'that will never take this one',
      answer: {
        status: 200,
        text: '{"FailedEntryCount":1,"Entries":[{"ErrorCode":"MalformedDetail","ErrorMessage":"no"}]}',
      },
      outcome: { error: 'MalformedDetail: no', final: true },
    },
    { what: 'that says nothing of the entry', answer: { status: 200, text: '{}' }, outcome: { error: 'no event id' } },
    {
      what: 'that is not there',
      answer: { status: 400, text: '{"__type":"com.amazon#ResourceNotFoundException","message":"no bus"}' },
      outcome: { error: 'ResourceNotFoundException: no bus' },
    },
    { what: 'behind something else', answer: { status: 502, text: '<html>' }, outcome: { error: 'status 502' } },
  ])('$what is an attempt that failed', async ({ answer, outcome }) => {
    answers.events = answer;
    expect(await sender.send(message())).toEqual(outcome);
  });

  test('that does not answer in time is one too, and so is one that cannot be reached', async () => {
    answers.events = undefined;
    expect(await sender.send(message())).toEqual({ error: 'no answer within 1 s' });
    const nowhere = createAwsTargets({
      clock,
      principal: '',
      region: async () => 'eu-west-1',
      credentials: async () => own,
      endpoint: 'http://127.0.0.1:1',
    });
    expect(await nowhere.send(message())).toEqual({ error: expect.stringContaining('ECONNREFUSED') });
  });

  test('is not asked to take more than 256 KB', async () => {
    const outcome = await sender.send(message({ body: JSON.stringify('x'.repeat(256 * 1024)) }));
    expect(outcome).toMatchObject({ error: expect.stringContaining('AWS takes'), final: true });
    expect(heard).toEqual([]);
  });
});

describe('a queue', () => {
  test('gets the CloudEvent as a message with what it is filtered by', async () => {
    expect(await sender.send(message({ arn: queue }))).toEqual({ status: 200, text: 'm-1' });
    const body = JSON.parse(sentTo('sqs')[0]?.body ?? '');
    expect(body).toMatchObject({
      QueueUrl: 'https://sqs.eu-central-1.amazonaws.com/123456789012/ops',
      MessageBody: message().body,
      MessageAttributes: { type: { DataType: 'String', StringValue: 'dev.isthmus.peering.requested.v1' } },
    });
    expect(body).not.toHaveProperty('MessageGroupId');
    expect(heard.map(isSigned)).toEqual([true, true]);
  });

  test('of the FIFO kind gets each event once, in the group of its subject, for every subject', async () => {
    const arn = `${queue}.fifo`;
    await sender.send(message({ arn }));
    await sender.send(message({ arn, event: { ...message().event, subject: `member/${'ü'.repeat(200)}` } }));
    const [plain, odd] = sentTo('sqs').map(({ body }) => JSON.parse(body));
    expect(plain).toMatchObject({ MessageGroupId: 'peering/pe_1', MessageDeduplicationId: 'ev_1' });
    expect(odd.MessageGroupId).toMatch(/^[0-9a-f]{64}$/);
  });

  test('that refuses says so with the code of AWS, without control characters', async () => {
    answers.sqs = { status: 400, text: '{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"gone\\u0007"}' };
    expect(await sender.send(message({ arn: queue }))).toEqual({ error: 'QueueDoesNotExist: gone ' });
  });
});

test('an attempt that is called off rejects with the reason', async () => {
  answers.events = undefined;
  const off = new AbortController();
  const sent = sender.send(message(), off.signal);
  await expect.poll(() => sentTo('events').length, { timeout: 30_000 }).toBe(1);
  off.abort(new Error('time is over'));
  await expect(sent).rejects.toThrow('time is over');
});

test.each([
  { partition: 'aws', host: 'sqs.eu-central-1.amazonaws.com' },
  { partition: 'aws-cn', host: 'sqs.cn-north-1.amazonaws.com.cn' },
])('services of partition $partition are at $host', async ({ partition, host }) => {
  const region = partition === 'aws' ? 'eu-central-1' : 'cn-north-1';
  const arn = `arn:${partition}:sqs:${region}:123456789012:ops`;
  await sender.send(message({ arn, roleArn: `arn:${partition}:iam::123456789012:role/isthmus-events-ops` }));
  expect(JSON.parse(sentTo('sqs')[0]?.body ?? '').QueueUrl).toBe(`https://${host}/123456789012/ops`);
});
