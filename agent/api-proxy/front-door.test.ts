/** What passes the front door, and the door itself: tokens, its API server, its certificate. */
import { X509Certificate } from 'node:crypto';
import type * as http from 'node:http';
import * as https from 'node:https';
import type { Duplex } from 'node:stream';
import type * as tls from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { issueDoorServing } from '#agent/pki/door-certificates.ts';
import {
  authority,
  call,
  closeDoors,
  closers,
  keptOpen,
  now,
  options,
  startDoor,
} from './testing/front-door-fixture.ts';

afterEach(closeDoors);

test('requests of a consumer arrive whole, with the token of its account in place of its own credentials', async () => {
  const { door, behind, issued } = await startDoor();
  const answer = await call(door.port, '/api/v1/pods?limit=5&continue=%2Fx', {
    headers: { authorization: 'Bearer mine', accept: 'application/json', 'x-stream': ['a', 'b'], host: 'other' },
  });
  expect([answer.status, answer.headers['x-of-api']]).toEqual([200, 'yes']);
  expect(behind.asked[0]).toMatchObject({
    method: 'GET',
    url: '/api/v1/pods?limit=5&continue=%2Fx',
    headers: { authorization: 'Bearer token-1', accept: 'application/json', 'x-stream': 'a, b', host: behind.url.host },
  });
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
    for (const headers of [{ 'content-length': 4 }, { 'transfer-encoding': 'chunked' }] as http.OutgoingHttpHeaders[])
      await call(door.port, '/api', { method, body: 'body', headers });
  expect(behind.asked.slice(1).map(({ method, body }) => [method, body])).toEqual(
    ['POST', 'POST', 'PUT', 'PUT', 'PATCH', 'PATCH', 'DELETE', 'DELETE'].map((method) => [method, 'body']),
  );
  expect(issued()).toBe(1);
});

test('a token is renewed at half its life, and when the API server refuses it', async () => {
  let status = 200;
  const { door, behind, clock } = await startDoor({ status: () => status });
  const used = async () => {
    await call(door.port, '/');
    return behind.asked.at(-1)?.headers.authorization;
  };
  expect([await used(), await used()]).toEqual(['Bearer token-1', 'Bearer token-1']);
  clock.advance(1_800_001);
  expect(await used()).toBe('Bearer token-2');
  status = 401;
  expect(await used()).toBe('Bearer token-2');
  status = 200;
  expect(await used()).toBe('Bearer token-3');
});

const upgrading = { connection: 'Upgrade', upgrade: 'SPDY/3.1' };

test('a token that the API server refuses to a command in a pod is not used again', async () => {
  let status = 401;
  const { door, behind } = await startDoor({ status: () => status });
  expect((await call(door.port, '/exec', { method: 'POST', headers: upgrading })).status).toBe(401);
  status = 200;
  await call(door.port, '/');
  expect(behind.asked.map(({ headers }) => headers.authorization)).toEqual(['Bearer token-1', 'Bearer token-2']);
});

test.each([
  '/api/v1/namespaces/shop/services/web:80/proxy/login',
  '/api/v1/namespaces/shop/services/web/proxy',
  '/api/v1/namespaces/shop/pods/web-0/proxy?path=x',
  '/api/v1/namespaces/shop/pods/web-0/pr%6fxy/',
  '/api/v1/namespaces/shop/services/web/proxy/%ff',
  '/api/v1/nodes/n1/proxy/metrics',
])('that a Service, pod or node behind %s answers 401 says nothing of the token', async (path) => {
  const { door, issued } = await startDoor({ status: () => 401 });
  for (const headers of [{}, upgrading]) expect((await call(door.port, path, { headers })).status).toBe(401);
  await call(door.port, path);
  expect(issued()).toBe(1);
});

test.each(['/api/v1/namespaces/proxy/pods', '/api/v1/namespaces/shop/pods/proxy', '/api/v1/nodes/proxy'])(
  '%s is of the API server itself, whose 401 is about the token',
  async (path) => {
    const { door, issued } = await startDoor({ status: () => 401 });
    await call(door.port, path);
    await call(door.port, path);
    expect(issued()).toBe(2);
  },
);

test('the audit log of the API server gets the address of the caller, and nothing that the caller says of its way or of the record', async () => {
  const { door, behind } = await startDoor({ status: (url) => (url.endsWith('/exec') ? 401 : 200) });
  const claims = {
    ...{ 'X-Forwarded-For': '10.0.0.1', 'X-Forwarded-Host': 'a', 'X-Forwarded-Uri': '/b', 'X-Real-Ip': '10.0.0.2' },
    ...{ Forwarded: 'for=10.0.0.3', 'Audit-ID': 'mine', 'X-Own': 'kept' },
  };
  await call(door.port, '/', { headers: claims });
  await call(door.port, '/api/v1/namespaces/shop/pods/web-0/exec', {
    method: 'POST',
    headers: { ...upgrading, ...claims },
  });
  const told = (headers: http.IncomingHttpHeaders) =>
    Object.entries(headers).filter(([name]) => /^(x-forwarded|x-real|forwarded|audit)/.test(name));
  expect(behind.asked.map(({ headers }) => told(headers))).toEqual([
    [['x-forwarded-for', '127.0.0.1']],
    [['x-forwarded-for', '127.0.0.1']],
  ]);
  expect(behind.asked[0]?.headers['x-own']).toBe('kept');
});

test('commands in pods pass: an upgraded connection carries bytes both ways', async () => {
  const { door, behind } = await startDoor();
  const headers = { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' };
  const echoed = await new Promise<string>((resolve, reject) => {
    const request = https.request(options(door.port, '/exec', { method: 'POST', headers }));
    request.on('upgrade', (_response, socket: Duplex) => {
      socket.on('error', () => undefined);
      socket.once('data', (piece: Buffer) => {
        socket.destroy();
        resolve(piece.toString());
      });
      socket.write('hello');
    });
    request.on('error', reject);
    request.end();
  });
  expect(echoed).toBe('hello');
  expect(behind.asked[0]?.headers).toMatchObject({
    authorization: 'Bearer token-1',
    'x-stream-protocol-version': 'v4.channel.k8s.io',
  });
});

test('an API server that is gone, or gives no token, is told as unavailable, and no detail of it', async () => {
  const { door, behind, logged } = await startDoor();
  behind.server.closeAllConnections();
  await new Promise((resolve) => behind.server.close(resolve));
  const answer = await call(door.port, '/');
  expect([answer.status, answer.text]).toEqual([503, expect.not.stringContaining('ECONNREFUSED')]);
  expect(logged.join()).toContain('ECONNREFUSED');
  const tokens = { of: () => Promise.reject(new Error('forbidden')), forget() {} };
  const deaf = await startDoor({ tokens });
  expect((await call(deaf.door.port, '/')).status).toBe(503);
  expect(logged.join()).not.toContain('token-');
});

test('the door changes its certificate while connections stay open', async () => {
  const { door } = await startDoor();
  const next = issueDoorServing(authority, ['127.0.0.1', '10.9.0.9'], now);
  const agent = keptOpen();
  closers.push(() => agent.destroy());
  const shown = (through: https.Agent | false) =>
    new Promise<string>((resolve, reject) => {
      const request = https.request(options(door.port, '/', {}, through));
      let socket: tls.TLSSocket | undefined;
      request.once('socket', (used) => {
        socket = used as tls.TLSSocket;
      });
      request.once('response', (response) => {
        const { fingerprint256 } = socket?.getPeerCertificate() ?? {};
        response.resume().on('end', () => resolve(fingerprint256 ?? ''));
      });
      request.on('error', reject).end();
    });
  const first = await shown(agent);
  door.serve(next);
  expect(await shown(agent)).toBe(first);
  expect(await shown(false)).toBe(new X509Certificate(next.certificate).fingerprint256);
});
