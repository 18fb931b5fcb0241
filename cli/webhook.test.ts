/** Webhooks end to end: the broker on a manual clock, a real receiver on loopback that verifies what it gets, the commands, and everything logged. */
import { createHmac } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { claimMs } from '#control/webhooks/schedule.ts';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { recordingLog } from '#test/harness/logs.ts';
import { isthmus, type Options, type Ran } from './captured-io.ts';

interface Got {
  readonly id: string;
  readonly timestamp: string;
  readonly signatures: readonly string[];
  readonly body: string;
}

let dir = '';
let broker: Broker;
let receiver: Server;
let url = '';
const clock = new ManualClock();
const got: Got[] = [];
let status = 200;
const { log, lines: logged } = recordingLog();
const secrets: string[] = [];

const start = (): Promise<Broker> =>
  startBroker({
    dataDir: path.join(dir, 'data'),
    listen: '127.0.0.1:0',
    tenant: 'acme',
    allowPrivateWebhooks: true,
    log,
    clock,
    version: '0',
  });

const login = async (key: string): Promise<void> => {
  const args = ['login', broker.url, '--ca-hash', broker.caHash, '--key', '-'];
  expect((await isthmus(args, { env: { ISTHMUS_CONFIG: path.join(dir, 'config.json') }, stdin: key })).code).toBe(0);
};
const cli = (line: string, options: Options = {}): Promise<Ran> =>
  isthmus(line.split(' '), { env: { ISTHMUS_CONFIG: path.join(dir, 'config.json') }, ...options });
const created = async (line: string): Promise<{ id: string; secret: string }> => {
  const { code, out, err } = await cli(line);
  expect([code, err]).toEqual([0, expect.stringContaining('wh_')]);
  secrets.push(out.trim());
  return { id: /wh_\w+/.exec(err)?.[0] ?? '', secret: out.trim() };
};
const sign = (secret: string, { id, timestamp, body }: Got): string => {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
};
const things = { count: 0 };
/** An event of the tenant, by another use case. */
const happen = async (): Promise<void> => {
  things.count += 1;
  expect((await cli(`key create key-${things.count} --role viewer`)).code).toBe(0);
};
const typesGot = (): string[] => got.map(({ body }) => JSON.parse(body).type);
const reached = (n: number) => expect.poll(() => got.length, { timeout: 5_000 }).toBe(n);
/** Once the broker sleeps until then, time goes on. */
async function pass(ms: number): Promise<void> {
  const { control, tenant } = broker;
  const caller = { tenant, principal: 'test', role: 'admin', from: 'test', requestId: 'test' } as const;
  await expect
    .poll(
      async () => {
        const hooks = await control.webhooks.list(caller);
        const pages = await Promise.all(
          hooks.items.map((hook) => control.webhooks.deliveries.list(caller, hook.id, { state: 'pending' })),
        );
        // Claimed now, and not settled yet.
        const claimedUntil = clock.now() + claimMs;
        return pages.flatMap(({ items }) => items).filter(({ nextAttemptAt }) => nextAttemptAt === claimedUntil).length;
      },
      { timeout: 5_000 },
    )
    .toBe(0);
  clock.advance(ms);
}

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-webhooks-'));
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const header = (name: string): string => String(request.headers[name]);
      got.push({
        id: header('webhook-id'),
        timestamp: header('webhook-timestamp'),
        signatures: header('webhook-signature').split(' '),
        body: Buffer.concat(chunks).toString('utf8'),
      });
      response.writeHead(status, { location: '/elsewhere' }).end('heard');
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  broker = await start();
  await login(broker.adminKey ?? '');
}, 60_000);
afterAll(async () => {
  await broker.close();
  receiver.closeAllConnections();
  receiver.close();
  await rm(dir, { recursive: true, force: true });
});
beforeEach(async () => {
  status = 200;
  for (const line of (await cli('webhook list -o name')).out.split('\n').filter(Boolean))
    await cli(`webhook delete ${line.replace('webhook/', '')}`);
  got.length = 0;
});

test('events arrive signed, as CloudEvents, and the log of deliveries says so', async () => {
  const { id, secret } = await created(`webhook create ${url} --type api-key.created --description ops`);
  await happen();
  await reached(1);
  const event = JSON.parse(got[0]!.body);
  expect(event).toMatchObject({
    specversion: '1.0',
    type: 'dev.isthmus.api-key.created.v1',
    source: `${broker.url}/tenants/acme`,
    data: { role: 'viewer' },
  });
  expect(got[0]!.signatures).toEqual([sign(secret, got[0]!)]);
  expect(got[0]!.id).toBe(event.id);
  expect((await cli('webhook list')).out).toMatch(/wh_\w+ +http:\S+ +api-key.created.v1 +enabled +- +ops/);
  await expect
    .poll(async () => (await cli(`webhook deliveries ${id}`)).out)
    .toMatch(/ev_\w+ +api-key.created.v1 +api-key\/ak_\w+ +delivered +1 +status 200 .*"heard"/);
  expect((await cli('get events -o json')).out).toContain(event.id);
  expect((await cli('get events')).out).toMatch(/ {3}api-key.created {3}/);
});

test('a test says what came of it', async () => {
  const { id } = await created(`webhook create ${url} --type peering.*`);
  got.length = 0;
  expect((await cli(`webhook test ${id}`)).out).toMatch(/^ev_\w+ was taken: status 200 after \d+ ms, "heard"\n$/);
  expect(typesGot()).toEqual(['dev.isthmus.webhook.test.v1']);
  status = 500;
  expect(await cli(`webhook test ${id}`)).toMatchObject({ code: 7, err: expect.stringContaining('status 500') });
});

test('what fails is tried again when its time comes, by this process or the next', async () => {
  const { id, secret } = await created(`webhook create ${url} --type api-key.*`);
  status = 302;
  await happen();
  await reached(1);
  await pass(10_000);
  await reached(2);
  await broker.close();
  broker = await start();
  status = 200;
  clock.advance(10 * 60_000);
  await reached(3);
  expect(new Set(got.map((one) => one.id)).size).toBe(1);
  expect(got.every((one) => one.signatures.includes(sign(secret, one)))).toBe(true);
  expect(Number(got[2]!.timestamp)).toBeGreaterThan(Number(got[0]!.timestamp) + 600);
  // A new port: the client logs in again.
  const self = { tenant: 'acme', principal: 'test', role: 'admin', from: 'test', requestId: 'test' } as const;
  await login((await broker.control.tenants.createKey(self, { name: 'again', role: 'admin' })).secret);
  await expect.poll(async () => (await cli(`webhook deliveries ${id} --state delivered -o name`)).out).toContain('ev_');
});

describe('dead letters', () => {
  test('are listed and sent again, one or all', async () => {
    const { id } = await created(`webhook create ${url} --type api-key.created`);
    status = 500;
    await happen();
    await happen();
    await reached(2);
    // A little longer than each pause of the schedule may be, and less than five days in all.
    for (const [i, minutes] of [0.2, 7, 40, 180, 420, 780, 1_080, 1_320, 1_800].entries()) {
      await pass(minutes * 60_000);
      await reached((i + 2) * 2);
    }
    await expect
      .poll(async () => (await cli(`webhook deliveries ${id} --state dead -o name`)).out.trim().split('\n').length)
      .toBe(2);
    status = 200;
    const [first = ''] = (await cli(`webhook deliveries ${id} --state dead -o name`)).out.split('\n');
    const one = first.replace('delivery/', '');
    expect((await cli(`webhook replay ${id} ${one}`)).out).toBe(`${one} is sent again\n`);
    await reached(21);
    expect(got.at(-1)?.id).toBe(one);
    await expect.poll(async () => (await cli(`webhook deliveries ${id} --state delivered -o name`)).out).toContain(one);
    expect((await cli(`webhook replay ${id}`)).out).toBe('1 dead letters are sent again\n');
    await reached(22);
    expect((await cli(`webhook replay ${id} ev_none`)).code).toBe(4);
  }, 30_000);
});

test('a rotated secret and its successor both sign until the overlap ends', async () => {
  const { id, secret: old } = await created(`webhook create ${url} --type api-key.*`);
  const { secret: fresh } = await created(`webhook rotate ${id} --overlap 1h`);
  await happen();
  await reached(1);
  expect(got[0]!.signatures).toEqual([sign(fresh, got[0]!), sign(old, got[0]!)]);
  await pass(3_600_000);
  await happen();
  await reached(2);
  expect(got[1]!.signatures).toEqual([sign(fresh, got[1]!)]);
});

test('a disabled webhook gets nothing, and says why', async () => {
  const { id } = await created(`webhook create ${url} --type api-key.*`);
  expect((await cli(`webhook disable ${id}`)).out).toBe(`webhook ${id} is disabled\n`);
  await happen();
  expect((await cli('webhook list')).out).toMatch(/disabled +switched off/);
  expect((await cli(`webhook replay ${id}`)).code).toBe(5);
  expect((await cli(`webhook enable ${id}`)).out).toBe(`webhook ${id} is enabled\n`);
  await happen();
  await reached(1);
});

test.each([
  { line: 'webhook create http://example.com/', code: 2, says: 'https only' },
  { line: 'webhook create https://user:pw@example.com/', code: 2, says: 'no user' },
  { line: 'webhook create https://example.com/ --type nonsense', code: 2, says: 'peering.phase-changed' },
  { line: 'webhook delete wh_none', code: 4, says: 'there is no webhook' },
  { line: 'webhook rotate wh_none', code: 4, says: 'there is no webhook' },
  { line: 'webhook test wh_none', code: 4, says: 'there is no webhook' },
  { line: 'webhook deliveries wh_none', code: 4, says: 'there is no webhook' },
])('$line ends with $code', async ({ line, code, says }) => {
  expect(await cli(line)).toMatchObject({ code, err: expect.stringContaining(says) });
});

test('the secrets are in no log, audit record, event or export, and in no file in clear', async () => {
  await created(`webhook create ${url}`);
  expect(secrets.length).toBeGreaterThan(3);
  const shown = [
    (await cli('get audit --limit 500 -o json')).out,
    (await cli('get events -o json')).out,
    (await cli('webhook list -o json')).out,
    ...logged,
    ...got.map(({ body }) => body),
  ].join('\n');
  const data = path.join(dir, 'data');
  const names = await readdir(data);
  const files = await Promise.all(
    names.filter((name) => name.startsWith('broker.db')).map((name) => readFile(path.join(data, name), 'latin1')),
  );
  for (const secret of secrets) {
    const bare = secret.replace('whsec_', '');
    expect(shown.includes(bare)).toBe(false);
    expect(files.some((text) => text.includes(bare))).toBe(false);
  }
  expect((await stat(path.join(data, 'webhooks.key'))).mode & 0o777).toBe(0o600);
});
