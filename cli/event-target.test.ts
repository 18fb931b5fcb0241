/** Event targets end to end: the broker as an identity at AWS, a server that stands for AWS, and the commands. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import { silentLog } from '#shared/ports/log.ts';
import { isthmus, type Ran } from './captured-io.ts';

const principal = 'arn:aws:iam::210987654321:role/broker';
const queue = 'arn:aws:sqs:eu-central-1:123456789012:events';
const role = 'arn:aws:iam::123456789012:role/isthmus-events-ops';
const session =
  '<r><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s3cr3t</SecretAccessKey><SessionToken>t0k3n</SessionToken></r>';

let dir = '';
let aws: Server;
let broker: Broker;
let trusted = true;
const taken: { readonly MessageBody: string }[] = [];

const cli = (line: string): Promise<Ran> =>
  isthmus(line.split(' '), { env: { ISTHMUS_CONFIG: path.join(dir, 'config.json') } });

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-event-targets-'));
  aws = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      if (!body.startsWith('{'))
        return void response.writeHead(trusted ? 200 : 403).end(trusted ? session : '<Code>AccessDenied</Code>');
      taken.push(JSON.parse(body));
      response.end(JSON.stringify({ MessageId: 'm-1' }));
    });
  });
  await new Promise<void>((resolve) => aws.listen(0, '127.0.0.1', resolve));
  vi.stubEnv('AWS_ENDPOINT_URL', `http://127.0.0.1:${(aws.address() as AddressInfo).port}`);
  vi.stubEnv('AWS_REGION', 'eu-west-1');
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDBROKER');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'broker-secret');
  const options = {
    dataDir: path.join(dir, 'data'),
    listen: '127.0.0.1:0',
    tenant: 'acme',
    log: silentLog,
    version: '0',
  };
  broker = await startBroker({ ...options, awsPrincipal: principal });
  const args = ['login', broker.url, '--ca-hash', broker.caHash, '--key', '-'];
  const env = { ISTHMUS_CONFIG: path.join(dir, 'config.json') };
  expect((await isthmus(args, { env, stdin: broker.adminKey ?? '' })).code).toBe(0);
}, 60_000);
afterAll(async () => {
  vi.unstubAllEnvs();
  await broker.close();
  aws.closeAllConnections();
  aws.close();
  await rm(dir, { recursive: true, force: true });
});
afterEach(() => {
  trusted = true;
  taken.length = 0;
});

async function created(options = '', as = role): Promise<string> {
  const { code, out, err } = await cli(`event-target create ${queue} --role ${as}${options}`);
  expect([code, out]).toEqual([0, 'isthmus/acme\n']);
  expect(err).toContain(principal);
  return /et_\w+/.exec(err)?.[0] ?? '';
}

test('an event is put into the queue, and the log of deliveries has what AWS answered', async () => {
  const id = await created(' --type api-key.created --description ops');
  expect((await cli('key create portal --role viewer')).code).toBe(0);
  await expect.poll(() => taken.length, { timeout: 5_000 }).toBe(1);
  expect(JSON.parse(taken[0]!.MessageBody)).toMatchObject({ type: 'dev.isthmus.api-key.created.v1' });
  await expect
    .poll(async () => (await cli(`event-target deliveries ${id}`)).out, { timeout: 5_000 })
    .toMatch(/ev_\w+ +api-key.created.v1 +api-key\/ak_\w+ +delivered +1 +m-1 after \d+ ms/);
  expect((await cli('event-target list')).out).toMatch(/et_\w+ +arn:\S+ +api-key.created.v1 +enabled +- +ops/);
  expect((await cli(`event-target delete ${id}`)).out).toBe(`event target ${id} is deleted\n`);
});

test('a test says what AWS answered, and whom to trust when the role does not', async () => {
  // Of another role than the other tests, which may have a session already.
  const id = await created(' --type peering.*', `${role}-new`);
  trusted = false;
  expect(await cli(`event-target test ${id}`)).toMatchObject({
    code: 7,
    err: expect.stringContaining(`to trust ${principal} with external ID isthmus/acme`),
  });
  trusted = true;
  expect((await cli(`event-target test ${id}`)).out).toMatch(/^ev_\w+ was taken: m-1 after \d+ ms\n$/);
  expect((await cli(`event-target replay ${id}`)).out).toBe('1 dead letters are sent again\n');
});

test('the policies that are printed are those of this target and this tenant', async () => {
  const id = await created();
  const { trust, permissions } = JSON.parse((await cli(`event-target policies ${id}`)).out);
  expect(trust.Statement).toEqual([
    {
      Effect: 'Allow',
      Principal: { AWS: principal },
      Action: 'sts:AssumeRole',
      Condition: { StringEquals: { 'sts:ExternalId': 'isthmus/acme' } },
    },
  ]);
  expect(permissions.Statement).toEqual([{ Effect: 'Allow', Action: 'sqs:SendMessage', Resource: queue }]);
});

test('a disabled event target gets nothing, and says why', async () => {
  const id = await created(' --type api-key.*');
  expect((await cli(`event-target disable ${id}`)).out).toBe(`event target ${id} is disabled\n`);
  expect((await cli('event-target list')).out).toMatch(/disabled +switched off/);
  expect(await cli(`event-target replay ${id}`)).toMatchObject({ code: 5, err: expect.stringContaining('enable') });
  expect((await cli(`event-target enable ${id}`)).out).toBe(`event target ${id} is enabled\n`);
});

test.each([
  { line: `event-target create arn:aws:s3:::bucket --role ${role}`, code: 2, says: 'arn:aws:sqs' },
  {
    line: `event-target create ${queue} --role arn:aws:iam::123456789012:role/admin`,
    code: 2,
    says: 'isthmus-events-',
  },
  {
    line: `event-target create ${queue} --role ${role.replace('1234', '9999')}`,
    code: 2,
    says: 'account of the target',
  },
  { line: 'event-target test et_none', code: 4, says: 'there is no event target' },
  { line: 'event-target policies et_none', code: 4, says: 'there is no event target' },
  { line: 'webhook delete et_none', code: 4, says: 'there is no webhook' },
])('$line ends with $code', async ({ line, code, says }) => {
  expect(await cli(line)).toMatchObject({ code, err: expect.stringContaining(says) });
});

test('a broker is not started with something that is no identity at AWS', async () => {
  const options = { dataDir: path.join(dir, 'other'), listen: '127.0.0.1:0', log: silentLog, version: '0' };
  await expect(startBroker({ ...options, awsPrincipal: 'me' })).rejects.toMatchObject({
    code: 'invalid_input',
    detail: { field: 'awsPrincipal' },
  });
});
