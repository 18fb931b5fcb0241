/** Consumers and strangers at the front door, over real TLS, with an API server that is played behind it. */
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import type * as http from 'node:http';
import * as https from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import * as tls from 'node:tls';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { digestOf } from '#agent/peering/credentials/front-door.ts';
import { createDoorAuthority, issueDoorClient, issueDoorServing } from '#agent/pki/door-certificates.ts';
import { issueServingCertificate } from '#agent/pki/webhook-certificate.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import { countOf } from '#test/harness/cases.ts';
import { eventually } from '#test/harness/eventually.ts';
import { AccountTokens } from './account-tokens.ts';
import type { DoorCaller } from './door-callers.ts';
import { type FrontDoorOptions, openFrontDoor } from './front-door.ts';

const now = Date.now();
const authority = createDoorAuthority(now);
const serving = issueDoorServing(authority, ['127.0.0.1'], now);
const api = issueServingCertificate(['127.0.0.1'], now);
const secret = { name: 'isthmus-credential-peer', uid: '1' };

function identity(by = authority, seconds = 3600) {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const subject = { commonName: 'rome', organization: 'liqo.io' };
  const cert = issueDoorClient(by, subject, publicKey, { now, seconds });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { cert, key, digest: digestOf(new X509Certificate(cert).raw) };
}
const rome = identity();

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Asked {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** Answers with what it was asked; watches of `/watch` stay open after their first line. */
async function startApi(status: (url: string) => number = () => 200) {
  const asked: Asked[] = [];
  const streams = new Set<Duplex>();
  const server = https.createServer({ cert: api.certificate, key: api.privateKey }, (request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => {
      body += piece.toString();
    });
    request.on('end', () => {
      asked.push({ method: request.method, url: request.url, headers: request.headers, body });
      response.writeHead(status(request.url ?? ''), { 'content-type': 'application/json', 'x-of-api': 'yes' });
      if (request.url === '/watch') response.write('first\n');
      else response.end(JSON.stringify(asked.at(-1)));
    });
  });
  server.on('upgrade', (request, socket: Duplex) => {
    asked.push({ method: request.method, url: request.url, headers: request.headers, body: '' });
    streams.add(socket);
    socket.on('error', () => socket.destroy());
    if (status(request.url ?? '') === 401)
      return void socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    for (const socket of streams) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { server, asked, url: new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`) };
}

async function startDoor(change: Partial<FrontDoorOptions> & { status?: (url: string) => number } = {}) {
  const behind = await startApi(change.status);
  const callers = new Map<string, DoorCaller>([
    [rome.digest, { consumer: 'rome', namespace: 'liqo-tenant-rome', account: 'isthmus-peer', secret }],
  ]);
  let issued = 0;
  const clock = new ManualClock(now);
  const request = async () => ({ token: `token-${++issued}`, endMs: clock.now() + 3_600_000 });
  const logged: string[] = [];
  const log: Log = { ...silentLog, warn: (...all) => void logged.push(JSON.stringify(all)) };
  const door = await openFrontDoor({
    ...{ serving, authority: authority.certificate, clock, log, port: 0, host: '127.0.0.1' },
    callerOf: (digest) => callers.get(digest),
    tokens: new AccountTokens(request, clock),
    upstream: { server: behind.url, ca: api.certificate },
    ...change,
  });
  closers.push(() => door.close());
  return { door, behind, callers, logged, clock, issued: () => issued };
}

interface Call {
  readonly method?: string;
  readonly headers?: http.OutgoingHttpHeaders;
  readonly body?: string;
  readonly who?: { readonly cert?: string; readonly key?: string };
}
interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}
/** Node would take the name out of the Host header. */
const checkedAt = (ip: string) => (_host: string, certificate: tls.PeerCertificate) =>
  tls.checkServerIdentity(ip, certificate);
const options = (port: number, path: string, { method = 'GET', headers = {}, who = rome }: Call) => ({
  ...{ host: '127.0.0.1', port, path, method, headers, agent: false as const },
  ...{ ca: authority.certificate, servername: '', checkServerIdentity: checkedAt('127.0.0.1') },
  ...(who.cert !== undefined && { cert: who.cert, key: who.key }),
});
const call = (port: number, path: string, some: Call = {}): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const request = https.request(options(port, path, some), (response) => {
      let text = '';
      response.on('data', (piece: Buffer) => {
        text += piece.toString();
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(some.body);
  });

/** What is answered to bytes as they are, by one that holds the certificate of rome. */
const raw = (port: number, bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { cert, key } = rome;
    const socket = tls.connect({ host: '127.0.0.1', port, ca: authority.certificate, cert, key }, () =>
      socket.write(bytes, 'latin1'),
    );
    let text = '';
    socket.on('data', (piece: Buffer) => {
      text += piece.toString('latin1');
    });
    socket.on('error', reject).on('close', () => resolve(text));
  });

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
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  closers.push(() => agent.destroy());
  const sockets = new Set<Duplex>();
  const ask = () =>
    new Promise<number | undefined>((resolve, reject) => {
      const request = https.request({ ...options(door.port, '/', {}), agent }, (response) => {
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

test.each([
  ['Impersonate-User', 403],
  ['impersonate-group', 403],
  ['Impersonate-Extra-scopes', 403],
  ['X-Remote-User', 403],
  ['x-remote-extra-a', 403],
])('the header %s is refused: a consumer acts for no other', async (name, status) => {
  const { door, behind } = await startDoor();
  const answer = await call(door.port, '/', { headers: { [name]: 'system:masters' } });
  expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(name.toLowerCase())]);
  expect(behind.asked).toEqual([]);
});

test.each([
  ['an absolute target', 'GET http://169.254.169.254/latest HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', / 400 /],
  ['a target with two slashes', 'GET //evil.example/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', / 400 /],
  ['a target that is no path', 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', / 400 /],
  ['CONNECT', 'CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: a\r\n\r\n', /^$/],
  [
    'a request inside another',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api HTTP/1.1\r\n\r\n',
    / 400 /,
  ],
  ['two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody', / 400 /],
  ['headers without end', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, / 431 /],
  ['no HTTP', '\u0000\u0001\u0002\r\n\r\n', / 400 /],
])('%s reaches nothing', async (_, bytes, says) => {
  const { door, behind } = await startDoor();
  expect(await raw(door.port, bytes)).toMatch(says);
  expect(behind.asked).toEqual([]);
});

test.each(['GET', 'DELETE', 'OPTIONS'])(
  'the body of a %s whose length is not to be passed on stays its body',
  async (method) => {
    const { door, behind } = await startDoor();
    const body = 'GET /inside HTTP/1.1\r\nHost: a\r\n\r\n';
    const head = `${method} /x HTTP/1.1\r\nHost: a\r\nConnection: close, content-length\r\nContent-Length: ${body.length}`;
    expect(await raw(door.port, `${head}\r\n\r\n${body}`)).toMatch(/ 200 /);
    await call(door.port, '/next');
    expect(behind.asked.map(({ url, body: got }) => [url, got])).toEqual([
      ['/x', body],
      ['/next', ''],
    ]);
  },
);

test('of every mixture of headers the API server sees one credential: the token of its account', async () => {
  const { door, behind } = await startDoor();
  const name = fc.constantFrom(
    ...[
      'authorization',
      'Authorization',
      'proxy-authorization',
      'cookie',
      'x-forwarded-for',
      'connection',
      'x-own',
      'te',
    ],
  );
  const value = fc.constantFrom('Bearer stolen', 'Basic eDp5', 'close, authorization', 'keep-alive', 'authorization');
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(name, value), { maxLength: 6 }), async (headers) => {
      const before = behind.asked.length;
      const lines = headers.map(([key, text]) => `${key}: ${text}\r\n`).join('');
      await raw(door.port, `GET /x HTTP/1.1\r\nHost: a\r\n${lines}Connection: close\r\n\r\n`);
      for (const { headers: seen } of behind.asked.slice(before)) {
        expect(seen.authorization).toBe('Bearer token-1');
        expect(seen['proxy-authorization']).toBeUndefined();
      }
    }),
    { numRuns: countOf(2_000, 60) },
  );
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
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  closers.push(() => agent.destroy());
  const shown = (through: https.Agent | false) =>
    new Promise<string>((resolve, reject) => {
      const request = https.request({ ...options(door.port, '/', {}), agent: through });
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
