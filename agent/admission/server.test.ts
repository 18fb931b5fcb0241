import https from 'node:https';
import tls from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { issueServingCertificate } from '#agent/pki/webhook-certificate.ts';
import { silentLog } from '#shared/ports/log.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { Hook } from './hook.ts';
import { allow, type Verdict } from './review.ts';
import { type AdmissionServer, type ServerOptions, serveAdmission } from './server.ts';

const certificate = issueServingCertificate(['localhost'], Date.now());
const secretPath = 'a'.repeat(64);
const path = `/${secretPath}/validate/things`;
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function start(hook: Hook = () => allow, options: Partial<ServerOptions> = {}): Promise<AdmissionServer> {
  const routes = new Map([['/validate/things', hook]]);
  const common = { routes, certificate, secretPath, log: silentLog, host: '127.0.0.1', port: 0 };
  const server = await serveAdmission({ ...common, ...options });
  closers.push(() => server.close());
  return server;
}

const target = ({ port }: AdmissionServer) =>
  ({ host: '127.0.0.1', port, servername: 'localhost', ca: certificate.certificate }) as const;

const reviewOf = (extra = ''): string =>
  JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u1',
      operation: 'CREATE',
      namespace: 'shop',
      userInfo: { username: 'slice-1' },
      object: { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'web', annotations: { extra } } },
    },
  });

/** Status of the answer; undefined: none came. */
const ask = (server: AdmissionServer, at = path, body = reviewOf()): Promise<number | undefined> =>
  new Promise((resolve) => {
    const headers = { 'content-length': Buffer.byteLength(body) };
    const request = https.request({ ...target(server), path: at, method: 'POST', agent: false, headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    request.once('error', () => resolve(undefined));
    request.end(body);
  });

/** A caller that announces `size` bytes and sends none of them. */
async function startSlowCaller(server: AdmissionServer, size: number, at = path) {
  const socket = tls.connect({ ...target(server) });
  closers.push(() => socket.destroy());
  let text = '';
  let closed = false;
  socket.on('data', (piece) => {
    text += piece;
  });
  socket
    .on('error', () => undefined)
    .on('close', () => {
      closed = true;
    });
  await new Promise((resolve) => socket.once('secureConnect', resolve));
  socket.write(`POST ${at} HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`);
  return { text: () => text, isClosed: () => closed, end: () => void socket.destroy() };
}

test.each([
  ['without the secret path', '/validate/things'],
  ['with a guess of it', `/${'b'.repeat(64)}/validate/things`],
  ['with a part of it', `/${'a'.repeat(63)}/validate/things`],
  ['with nothing', '//validate/things'],
])('a caller %s is not heard, and no hook sees its review', async (_what, at) => {
  const seen: unknown[] = [];
  const server = await start((review) => {
    seen.push(review);
    return allow;
  });
  expect(await ask(server, at)).toBe(404);
  expect(seen).toEqual([]);
  expect(await ask(server)).toBe(200);
  expect(seen).toHaveLength(1);
});

test('a stranger that sends slowly is let go at once, without its body', async () => {
  const server = await start();
  const caller = await startSlowCaller(server, 8 * 1024 * 1024, '/validate/things');
  await eventually('the end', async () => caller.isClosed());
  expect(caller.text()).toContain(' 404 ');
});

test('another secret path is heard beside the one before it, until it takes over', async () => {
  const server = await start();
  const other = 'c'.repeat(64);
  const both = async () => [await ask(server), await ask(server, `/${other}/validate/things`)];
  expect(await both()).toEqual([200, 404]);
  server.hearAlso(other);
  expect(await both()).toEqual([200, 200]);
  server.use({ ...certificate, secretPath: other });
  expect(await both()).toEqual([404, 200]);
});

test('bodies that are on their way share one budget, which is free again when their callers are gone', async () => {
  const server = await start(() => allow, { budgetBytes: 10_000, patienceMs: 60_000 });
  const slow = [await startSlowCaller(server, 6_000), await startSlowCaller(server, 3_000)];
  const large = reviewOf('x'.repeat(9_000));
  await eventually('a refusal', async () => (await ask(server, path, large)) === 429);
  for (const { end } of slow) end();
  await eventually('an answer', async () => (await ask(server, path, large)) === 200);
});

test('a body that takes too long ends with its connection', async () => {
  const server = await start(() => allow, { patienceMs: 100 });
  const slow = await startSlowCaller(server, 6_000);
  await eventually('the end', async () => slow.isClosed());
});

test('headers that take too long end with their connection, and a spare connection that has asked nothing yet does not', async () => {
  const server = await start(() => allow, { patienceMs: 100 });
  const [spare, slow] = [tls.connect({ ...target(server) }), tls.connect({ ...target(server) })];
  const closed = new Set<tls.TLSSocket>();
  for (const socket of [spare, slow]) {
    closers.push(() => socket.destroy());
    // Unread, the answer to it would keep the socket open.
    if (socket === slow) socket.resume();
    socket.on('error', () => undefined).on('close', () => closed.add(socket));
    await new Promise((resolve) => (socket.authorized ? resolve(undefined) : socket.once('secureConnect', resolve)));
  }
  slow.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n`);
  await eventually('the end of the slow one', async () => closed.has(slow));
  let text = '';
  spare.on('data', (piece) => {
    text += piece;
  });
  const body = reviewOf();
  spare.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  await eventually('the answer to the spare one', async () => text.includes('"allowed":true'));
  expect(text).toMatch(/^HTTP\/1.1 200 /);
});

test('of connections that ask nothing the oldest ends when there are too many, and one that has asked does not', async () => {
  const server = await start(() => allow, { mostUnasked: 2 });
  const closed: string[] = [];
  const open = async (name: string): Promise<tls.TLSSocket> => {
    const socket = tls.connect({ ...target(server) });
    closers.push(() => socket.destroy());
    socket.resume().on('error', () => undefined);
    socket.on('close', () => closed.push(name));
    await new Promise((resolve) => socket.once('secureConnect', resolve));
    return socket;
  };
  const asking = await open('asking');
  const body = reviewOf();
  const answered = new Promise((resolve) => asking.once('data', resolve));
  asking.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  await answered;
  for (const name of ['oldest', 'older', 'newest']) await open(name);
  await eventually('the end of one', async () => closed.length > 0);
  expect(closed).toEqual(['oldest']);
});

test('a budget is held until the review is judged', async () => {
  let judge = (_: Verdict): void => undefined;
  let asked = 0;
  const server = await start(
    () => {
      asked++;
      return asked === 1 ? new Promise<Verdict>((resolve) => (judge = resolve)) : allow;
    },
    { budgetBytes: 10_000 },
  );
  const first = ask(server, path, reviewOf('x'.repeat(6_000)));
  await eventually('the first', async () => asked === 1);
  expect(await ask(server, path, reviewOf('x'.repeat(6_000)))).toBe(429);
  judge(allow);
  expect(await first).toBe(200);
  expect(await ask(server, path, reviewOf('x'.repeat(6_000)))).toBe(200);
});

test('a body beyond what etcd takes, and one of unknown size, are not read', async () => {
  const server = await start();
  const large = await startSlowCaller(server, 8 * 1024 * 1024 + 1);
  await eventually('413', async () => large.text().includes(' 413 ') && large.isClosed());
  const status = await new Promise<number | undefined>((resolve) => {
    const request = https.request({ ...target(server), path, method: 'POST', agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    request.once('error', () => resolve(undefined));
    request.write('x');
    request.end('y');
  });
  expect(status).toBe(411);
});
