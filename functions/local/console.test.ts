/** The console at the edge of the broker: its files and their headers, sessions, and which requests a session's cookie may make. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSealedBox } from '#control/adapters/sealed-box/sealed-box.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type Broker, startBroker } from './broker.ts';
import { createSessions } from './console-session.ts';
import { type Answer, send } from './scripted-agent.ts';

let dir = '';
let broker: Broker;
let offsetMs = 0;
const clock: Clock = { now: () => Date.now() + offsetMs, sleep: systemClock.sleep };
const start = (): Promise<Broker> =>
  startBroker({
    dataDir: path.join(dir, 'data'),
    listen: '127.0.0.1:0',
    log: silentLog,
    clock,
    version: '0.1.0',
    consoleFolder: async () => path.join(dir, 'console'),
  });

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-console-'));
  await mkdir(path.join(dir, 'console', 'assets'), { recursive: true });
  await writeFile(path.join(dir, 'console', 'index.html'), '<!doctype html><title>Isthmus</title>');
  await writeFile(path.join(dir, 'console', 'assets', 'index-abc.js'), 'export {};'.repeat(100));
  broker = await start();
});
afterAll(async () => {
  await broker.close();
  await rm(dir, { recursive: true, force: true });
});

const own = { 'isthmus-console': '1' };
const ask = (method: string, at: string, headers: Record<string, string> = {}, body?: unknown): Promise<Answer> =>
  send({
    method,
    url: broker.url + at,
    ca: broker.caPem,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

const setCookie = ({ headers }: Answer): string => String(headers['set-cookie'] ?? '');
async function cookieFor(key: string): Promise<string> {
  const answer = await ask('POST', '/console/session', own, { key });
  expect(answer.status).toBe(200);
  return setCookie(answer).split(';')[0] ?? '';
}

describe('the page', () => {
  test('comes with a policy that lets it load nothing from elsewhere and run no script of its own text', async () => {
    const { status, headers, body } = await ask('GET', '/');
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(body).toContain('<title>Isthmus</title>');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
  });

  test('is compressed, and not sent again when it has not changed', async () => {
    const whole = await ask('GET', '/assets/index-abc.js');
    const small = await ask('GET', '/assets/index-abc.js', { 'accept-encoding': 'gzip' });
    expect(small.headers['content-encoding']).toBe('gzip');
    expect(Number(small.headers['content-length'])).toBeLessThan(Number(whole.headers['content-length']));
    expect(whole.headers['cache-control']).toContain('immutable');
    expect((await ask('GET', '/', { 'if-none-match': String((await ask('GET', '/')).headers.etag) })).status).toBe(304);
  });

  test.each(['/assets/none.js', '/assets/../../data/broker.db', '/assets/..%2f..%2fdata%2fbroker.db'])(
    'is no way to other files: %s',
    async (at) => {
      expect((await ask('GET', at)).status).toBe(404);
    },
  );
});

describe('a session', () => {
  test('is a cookie that no script can read and no other site can send, and it has the rights of its key', async () => {
    const answer = await ask('POST', '/console/session', own, { key: broker.adminKey });
    expect(answer.body).toEqual({
      kind: 'member',
      tenant: 'default',
      principal: expect.any(String),
      role: 'admin',
      broker: { url: broker.url, caHash: broker.caHash },
    });
    expect(setCookie(answer)).toMatch(
      /^__Host-isthmus-session=\S+; Path=\/; Secure; HttpOnly; SameSite=Strict; Max-Age=\d+$/,
    );
    expect(setCookie(answer)).not.toContain(broker.adminKey);
    const cookie = setCookie(answer).split(';')[0] ?? '';
    expect((await ask('GET', '/v1/tenants/me', { ...own, cookie })).body).toMatchObject({ role: 'admin' });
  });

  test('of a viewer reads and changes nothing', async () => {
    const admin = { ...own, cookie: await cookieFor(broker.adminKey ?? '') };
    const issued = await ask('POST', '/v1/keys', admin, { name: 'reader', role: 'viewer' });
    const viewer = { ...own, cookie: await cookieFor(issued.body.secret) };
    expect((await ask('GET', '/v1/clusters', viewer)).status).toBe(200);
    expect((await ask('POST', '/v1/join-tokens', viewer, { cluster: 'rome' })).body.code).toBe('forbidden');
    expect((await ask('POST', `/v1/keys/${issued.body.key.id}/rotate`, viewer, {})).body.code).toBe('forbidden');
  });

  test('ends when its key is revoked, and after twelve hours', async () => {
    const admin = { ...own, cookie: await cookieFor(broker.adminKey ?? '') };
    const issued = await ask('POST', '/v1/keys', admin, { name: 'short', role: 'viewer' });
    const short = { ...own, cookie: await cookieFor(issued.body.secret) };
    expect((await ask('DELETE', `/v1/keys/${issued.body.key.id}`, admin)).status).toBe(200);
    expect((await ask('GET', '/v1/clusters', short)).status).toBe(401);
    offsetMs = 12 * 3_600_000 + 1_000;
    expect((await ask('GET', '/v1/clusters', admin)).status).toBe(401);
    expect((await ask('GET', '/console/session', admin)).body).toEqual({ kind: 'none' });
    offsetMs = 0;
  });

  test('outlives a restart of the broker', async () => {
    const key = broker.adminKey ?? '';
    const cookie = await cookieFor(key);
    await broker.close();
    broker = Object.assign(await start(), { adminKey: key });
    expect((await ask('GET', '/v1/clusters', { ...own, cookie })).status).toBe(200);
  });

  test('of an operator of the broker sees tenants and nothing inside one', async () => {
    const operatorKey = await broker.control.tenants.operators.issue({ from: 'local', requestId: 'rq' });
    const operator = { ...own, cookie: await cookieFor(operatorKey) };
    expect((await ask('GET', '/console/session', operator)).body.kind).toBe('operator');
    expect((await ask('GET', '/v1/tenants', operator)).status).toBe(200);
    expect((await ask('GET', '/v1/clusters', operator)).body.code).toBe('forbidden');
  });

  test('is not begun by a wrong key', async () => {
    const answer = await ask('POST', '/console/session', own, { key: 'isk_wrong' });
    expect([answer.status, setCookie(answer)]).toEqual([401, '']);
    const odd = await ask('POST', '/console/session', own, { secret: 'x' });
    expect([odd.status, odd.body.code]).toEqual([400, 'malformed_request']);
  });

  test('that browsers would drop is refused in words: name and value of a cookie have 4,096 bytes', async () => {
    const sessions = createSessions(createSealedBox(new Uint8Array(32)), clock);
    const begun = await sessions.begin({ credential: 'x'.repeat(2_900), tenant: 'default' });
    expect(begun.split(';')[0]?.length).toBeLessThanOrEqual(4_096);
    await expect(sessions.begin({ credential: 'x'.repeat(3_100), tenant: 'default' })).rejects.toMatchObject({
      code: 'too_large',
      message: expect.stringContaining('fewer claims'),
    });
  });

  test('is ended by the page', async () => {
    expect(setCookie(await ask('DELETE', '/console/session', own))).toContain('Max-Age=0');
  });
});

describe('a request from elsewhere with the cookie of a session', () => {
  test.each([
    ['without the header that only the page can send', {}],
    ['with the origin of another site', { ...own, origin: 'https://elsewhere.example' }],
    ['of another site, as the browser says', { ...own, 'sec-fetch-site': 'cross-site' }],
    ['of a sibling, as the browser says', { ...own, 'sec-fetch-site': 'same-site' }],
    ['with an opaque origin', { ...own, origin: 'null' }],
  ])('is refused %s', async (_, headers) => {
    const cookie = await cookieFor(broker.adminKey ?? '');
    const answer = await ask('POST', '/v1/join-tokens', { ...headers, cookie }, { cluster: 'rome' });
    expect([answer.status, answer.body.code]).toEqual([403, 'forbidden']);
    expect((await ask('GET', '/v1/clusters', { ...headers, cookie })).status).toBe(403);
    expect((await ask('POST', '/console/session', headers, { key: broker.adminKey })).status).toBe(403);
  });

  test('is nothing without the cookie, and a key of its own needs none', async () => {
    expect((await ask('GET', '/v1/clusters', own)).status).toBe(401);
    const authorization = `Bearer ${broker.adminKey}`;
    expect((await ask('GET', '/v1/clusters', { authorization, cookie: 'a=b' })).status).toBe(200);
  });

  test('authenticates as none with a cookie that was changed', async () => {
    const cookie = await cookieFor(broker.adminKey ?? '');
    // Not the last character, some of whose bits mean nothing.
    const at = cookie.length - 9;
    const changed = `${cookie.slice(0, at)}${cookie[at] === 'A' ? 'B' : 'A'}${cookie.slice(at + 1)}`;
    expect((await ask('GET', '/v1/clusters', { ...own, cookie: changed })).status).toBe(401);
  });
});

test('a broker without a console has no page', async () => {
  const bare = await startBroker({
    dataDir: path.join(dir, 'bare'),
    listen: '127.0.0.1:0',
    log: silentLog,
    clock,
    version: '0.1.0',
  });
  try {
    expect((await send({ method: 'GET', url: `${bare.url}/`, ca: bare.caPem })).status).toBe(404);
  } finally {
    await bare.close();
  }
});
