/** Portals that listen at a broker of one process, over real WebSockets. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import WebSocket from 'ws';
import type { Control } from '#control/control.ts';
import { maxListeners } from '#control/events/listeners.ts';
import { type Clock, ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type Broker, startBroker } from './broker.ts';
import { createListeningSockets } from './listening-sockets.ts';
import { type Answer, send } from './scripted-agent.ts';
import type { StartTurns } from './start-turns.ts';

let dir = '';
let broker: Broker;
let offsetMs = 0;
const clock: Clock = { now: () => Date.now() + offsetMs, sleep: systemClock.sleep };
const portals: Portal[] = [];

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-listen-'));
  broker = await startBroker({ dataDir: dir, listen: '127.0.0.1:0', log: silentLog, clock, version: '0.1.0' });
});
afterEach(async () => {
  for (const { socket } of portals.splice(0)) socket.terminate();
  offsetMs = 0;
});
afterAll(async () => {
  await broker.close();
  await rm(dir, { recursive: true, force: true });
});

interface Portal {
  readonly socket: WebSocket;
  readonly frames: { readonly type: string; readonly cursor?: string }[];
  closed: number | undefined;
}

async function rest(method: string, pathname: string, body?: unknown, key = broker.adminKey): Promise<Answer> {
  return send({
    method,
    url: broker.url + pathname,
    ca: broker.caPem,
    headers: { authorization: `Bearer ${key}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function newKey(over: object = {}, admin = broker.adminKey): Promise<{ secret: string; id: string }> {
  const { body } = await rest('POST', '/v1/keys', { name: 'portal', role: 'viewer', ...over }, admin);
  return { secret: body.secret, id: body.key.id };
}

/** Undefined `socket`: refused. */
async function tryListen(key: string): Promise<Portal | { readonly status: number; readonly code: string }> {
  const socket = new WebSocket(`${broker.url.replace('https', 'wss')}/v1/agent/connect`, {
    ca: broker.caPem,
    headers: { authorization: `Bearer ${key}` },
  });
  const portal: Portal = { socket, frames: [], closed: undefined };
  socket.on('message', (data) => portal.frames.push(JSON.parse(data.toString())));
  socket.on('close', (code) => {
    portal.closed = code;
  });
  return new Promise((resolve, reject) => {
    socket.once('open', () => {
      portals.push(portal);
      resolve(portal);
    });
    socket.once('error', reject);
    socket.once('unexpected-response', (_, response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, code: JSON.parse(Buffer.concat(chunks).toString()).code }),
      );
    });
  });
}

async function listen(key: string): Promise<Portal> {
  const portal = await tryListen(key);
  if ('status' in portal) throw new Error(`refused: ${portal.status} ${portal.code}`);
  return portal;
}

/** After the answer nothing of before is underway: frames of one socket come in order. */
async function pong(portal: Portal): Promise<string> {
  const before = portal.frames.filter(({ type }) => type === 'pong').length;
  portal.socket.send('{"type":"ping"}');
  return eventually('the pong', async () => portal.frames.filter(({ type }) => type === 'pong')[before]?.cursor);
}

const toldTimes = ({ frames }: Portal): number => frames.filter(({ type }) => type === 'events').length;
const told = (portal: Portal, atLeast = 1) =>
  eventually('the frame that says so', async () => (toldTimes(portal) >= atLeast ? true : undefined));
const feedAfter = async (cursor: string): Promise<Answer> => rest('GET', `/v1/events?cursor=${cursor}`);

test('a portal is told that something was committed, and reads what it is from where its pong said that the feed ended', async () => {
  const portal = await listen((await newKey()).secret);
  const cursor = await pong(portal);
  expect((await feedAfter(cursor)).body.items).toEqual([]);
  const before = toldTimes(portal);
  const { id } = await newKey();
  await told(portal, before + 1);
  expect(portal.frames.at(-1)).toEqual({ type: 'events' });
  const { items } = (await feedAfter(cursor)).body;
  expect(items.map(({ subject }: { subject: string }) => subject)).toContain(`api-key/${id}`);
});

test('a portal is told of its own tenant only', async () => {
  const { body } = await rest('POST', '/v1/tenants', { name: 'globex' }, broker.operatorKey);
  const others = body.firstKey.secret as string;
  const theirs = await listen(others);
  const mine = await listen((await newKey()).secret);
  await pong(mine);
  const [before, theirsBefore] = [toldTimes(mine), toldTimes(theirs)];
  for (let i = 0; i < 5; i += 1) await newKey({}, others);
  await told(theirs, theirsBefore + 1);
  await pong(mine);
  expect(toldTimes(mine)).toBe(before);
});

test('what is read after the last frame of a burst has the last change', async () => {
  const portal = await listen((await newKey()).secret);
  let cursor = await pong(portal);
  const read = new Set<string>();
  let reading = Promise.resolve();
  portal.socket.on('message', () => {
    reading = reading.then(async () => {
      const { body } = await feedAfter(cursor);
      cursor = body.cursor;
      for (const { subject } of body.items) read.add(subject);
    });
  });
  const made = await Promise.all(Array.from({ length: 40 }, async () => `api-key/${(await newKey()).id}`));
  await eventually('all of the burst', async () => made.every((subject) => read.has(subject)));
  await reading;
});

test('a burst is told at once, once more a quarter of a second later, and no more; and not to a client that has not taken the frame before', async () => {
  const manual = new ManualClock();
  let hear = (): void => undefined;
  let deaf = false;
  const sent: string[] = [];
  const taken: (() => void)[] = [];
  const socketOf = (id: string) =>
    ({
      readyState: 1,
      send(_frame: string, done: () => void) {
        sent.push(id);
        if (id === 'slow') taken.push(done);
        else done();
      },
    }) as unknown as WebSocket;
  const sockets = createListeningSockets(socketOf);
  const caller = { tenant: 'acme', principal: 'api-key/ak_1', role: 'viewer', from: '', requestId: '' } as const;
  sockets.attach({
    control: { tenants: { authenticateAgain: async () => caller } as unknown as Control['tenants'] },
    clock: manual,
    log: silentLog,
    turns: { take: async () => undefined } as unknown as StartTurns,
    hear: (_names, ear) => {
      hear = ear;
      return () => {
        deaf = true;
      };
    },
  });
  const listener = { tenant: 'acme', keyId: 'ak_1' };
  for (const id of ['quick', 'slow']) sockets.add(id, listener);
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  for (let i = 0; i < 100; i += 1) hear();
  await settle();
  expect(sent).toEqual(['quick', 'slow']);
  for (let i = 0; i < 100; i += 1) hear();
  await settle();
  expect(sent).toEqual(['quick', 'slow']);
  manual.advance(250);
  await settle();
  expect(sent).toEqual(['quick', 'slow', 'quick']);
  manual.advance(250);
  await settle();
  taken[0]?.();
  hear();
  await settle();
  expect(sent).toEqual(['quick', 'slow', 'quick', 'quick', 'slow']);
  for (const id of ['quick', 'slow']) sockets.remove(id, listener);
  expect(deaf).toBe(true);
  sockets.close();
});

test.each([
  ['revoked', (id: string) => rest('DELETE', `/v1/keys/${id}`)],
  ['rotated', (id: string) => rest('POST', `/v1/keys/${id}/rotate`, {})],
])('the socket of a key that is %s is closed by the very change', async (_, end) => {
  const { secret, id } = await newKey();
  const portal = await listen(secret);
  expect((await end(id)).status).toBeLessThan(300);
  await eventually('the end', async () => portal.closed);
  expect(portal.closed).toBe(1008);
  expect(await tryListen(secret)).toEqual({ status: 401, code: 'unauthenticated' });
});

test('the sockets of a tenant that is suspended are told nothing more', async () => {
  const { body } = await rest('POST', '/v1/tenants', { name: 'initech' }, broker.operatorKey);
  const portal = await listen(body.firstKey.secret);
  await rest('PATCH', '/v1/tenants/initech', { state: 'suspended' }, broker.operatorKey);
  portal.socket.send('{"type":"ping"}');
  await eventually('the end', async () => portal.closed);
  expect(portal.frames.filter(({ type }) => type === 'pong')).toEqual([]);
  expect(await tryListen(body.firstKey.secret)).toEqual({ status: 403, code: 'tenant_suspended' });
});

test('a key without the right to the feed is refused, one of an operator too', async () => {
  const narrow = await newKey({ scopes: ['clusters:read'] });
  expect(await tryListen(narrow.secret)).toEqual({ status: 403, code: 'forbidden' });
  expect(await tryListen(broker.operatorKey ?? '')).toEqual({ status: 401, code: 'unauthenticated' });
});

test('the twenty-first socket of a tenant is refused, until one of them is lost', async () => {
  const { secret } = await newKey();
  const open: Portal[] = [];
  await eventually('those of other tests are gone', async () => {
    const one = await tryListen(secret);
    if (!('status' in one)) open.push(one);
    return open.length === maxListeners ? true : undefined;
  });
  expect(await tryListen(secret)).toEqual({ status: 409, code: 'limit_reached' });
  open[7]?.socket.terminate();
  await eventually('room', async () => ('status' in (await tryListen(secret)) ? undefined : true));
  await newKey();
  await told(open[0] as Portal);
});

test('a broker that stops closes the sockets of portals', async () => {
  const other = await startBroker({
    dataDir: path.join(dir, 'other'),
    listen: '127.0.0.1:0',
    log: silentLog,
    version: '0.1.0',
  });
  const socket = new WebSocket(`${other.url.replace('https', 'wss')}/v1/agent/connect`, {
    ca: other.caPem,
    headers: { authorization: `Bearer ${other.adminKey}` },
  });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await other.close();
  expect(await closed).toBe(1001);
});
