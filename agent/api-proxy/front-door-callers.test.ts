/** Callers at the front door: which certificates count, how long, and how much one consumer or address may ask for. */
import type * as http from 'node:http';
import * as https from 'node:https';
import type { Duplex } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { createDoorAuthority } from '#agent/pki/door-certificates.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  authority,
  type Call,
  call,
  closeDoors,
  closers,
  identity,
  keptOpen,
  now,
  options,
  rome,
  secret,
  serving,
  startDoor,
} from './testing/front-door-fixture.ts';

afterEach(closeDoors);

test.each([
  ['no certificate', {}],
  ['a certificate of another authority with the same names', identity(createDoorAuthority(now))],
  ['a certificate that has ended', identity(authority, -1800)],
  ['the certificate of the door itself', { cert: serving.certificate, key: serving.privateKey }],
])('%s gets no answer at all', async (_, who) => {
  const { door, behind } = await startDoor();
  await expect(call(door.port, '/', { who })).rejects.toThrow();
  expect(behind.asked).toEqual([]);
});

test('a certificate of ours that is not, or no longer, of a consumer is refused in words', async () => {
  const { door, behind, callers } = await startDoor();
  const stranger = await call(door.port, '/', { who: identity() });
  expect([stranger.status, JSON.parse(stranger.text)]).toMatchObject([401, { kind: 'Status', reason: 'Unauthorized' }]);
  callers.clear();
  expect((await call(door.port, '/')).status).toBe(401);
  const headers = { connection: 'Upgrade', upgrade: 'SPDY/3.1' };
  expect((await call(door.port, '/exec', { method: 'POST', headers })).status).toBe(401);
  expect(behind.asked).toEqual([]);
});

test('a connection that stays open is refused when its certificate has ended', async () => {
  const { door, clock } = await startDoor();
  const agent = keptOpen();
  closers.push(() => agent.destroy());
  const sockets = new Set<Duplex>();
  const ask = () =>
    new Promise<number | undefined>((resolve, reject) => {
      const request = https.request(options(door.port, '/', {}, agent), (response) => {
        response.resume().on('end', () => resolve(response.statusCode));
      });
      request.once('socket', (socket) => sockets.add(socket));
      request.on('error', reject).end();
    });
  expect(await ask()).toBe(200);
  clock.advance(3_590_000);
  expect(await ask()).toBe(200);
  clock.advance(20_000);
  expect(await ask()).toBe(401);
  expect(sockets.size).toBe(1);
});

test('a watch that is open is cut when its certificate counts no more, and those of others stay', async () => {
  const { door, callers } = await startDoor();
  const other = identity();
  callers.set(other.digest, { consumer: 'oslo', namespace: 'liqo-tenant-oslo', account: 'isthmus-peer', secret });
  const watchBy = (who: Call['who']) =>
    new Promise<{ readonly ended: () => boolean; readonly request: http.ClientRequest }>((resolve, reject) => {
      let over = false;
      const request = https.request(options(door.port, '/watch', { who: who ?? rome }), (response) => {
        response
          .on('error', () => undefined)
          .on('close', () => {
            over = true;
          });
        response.once('data', () => resolve({ ended: () => over, request }));
      });
      request.on('error', reject).end();
    });
  const [mine, theirs] = [await watchBy(rome), await watchBy(other)];
  callers.delete(rome.digest);
  door.retain();
  await eventually('the watch to end', async () => mine.ended());
  expect(theirs.ended()).toBe(false);
  theirs.request.destroy();
});

test('a consumer has a bounded number of requests at a time, and others have their own', async () => {
  const { door, callers } = await startDoor({ maxRequests: 2 });
  const other = identity();
  callers.set(other.digest, { consumer: 'oslo', namespace: 'liqo-tenant-oslo', account: 'isthmus-peer', secret });
  const open: http.ClientRequest[] = [];
  for (let i = 0; i < 2; i++)
    await new Promise<void>((resolve, reject) => {
      const request = https.request(options(door.port, '/watch', {}), (response) => {
        response.on('error', () => undefined).once('data', () => resolve());
      });
      open.push(request.on('error', reject));
      request.end();
    });
  const third = await call(door.port, '/');
  expect([third.status, third.headers['retry-after']]).toEqual([429, '1']);
  expect((await call(door.port, '/', { who: other })).status).toBe(200);
  for (const request of open)
    request
      .off('error', () => undefined)
      .on('error', () => undefined)
      .destroy();
  await eventually('room for another', async () => (await call(door.port, '/')).status === 200);
});

test('an address that opens connections without end is cut off before TLS', async () => {
  const { door } = await startDoor();
  const knock = async () => (await call(door.port, '/').catch(() => ({ status: 0 }))).status;
  const all: number[] = [];
  for (let i = 0; i < 31; i++) all.push(...(await Promise.all(Array.from({ length: 10 }, knock))));
  expect(all.filter((status) => status === 200)).toHaveLength(300);
  expect(all.slice(-10)).toEqual(Array.from({ length: 10 }, () => 0));
}, 60_000);
