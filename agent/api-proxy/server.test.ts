/** A consumer's connection, the proxy and an API server behind it, over real sockets and real TLS. */
import { generateKeyPairSync } from 'node:crypto';
import net from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { askForCertificate } from '#agent/peering/renewal/fetch-certificate.ts';
import { proxyTokens } from '#agent/pki/proxy-token.ts';
import { issueServingCertificate } from '#agent/pki/webhook-certificate.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import { openRequest } from '#kube/http/request.ts';
import type { Log } from '#shared/ports/log.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import { ProxyAuthorizer } from './authorizer.ts';
import { type ApiProxy, type ApiProxyOptions, startApiProxy } from './server.ts';
import { playApiServer } from './testing/played-api-server.ts';

const name = 'api.milan.example';
const rome = generateKeyPairSync('ed25519');
const certificate = issueServingCertificate([name], Date.now());
const ready: Record<string, string> = { rome: 'the certificate of rome\n' };
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function startApiServer() {
  const names = new Set<unknown>();
  const played = await playApiServer(certificate, (request, response) => {
    names.add((request.socket as unknown as { servername: unknown }).servername);
    response.end(`you asked for ${request.url}`);
  });
  closers.push(() => played.close());
  return { port: played.port, names };
}

interface Spoken {
  readonly message: string;
  readonly fields: unknown;
}

async function startProxy(change: Partial<ApiProxyOptions> & { nonce?: string } = {}) {
  const server = await startApiServer();
  const { nonce = 'a-nonce-of-this-run' } = change;
  const logged: Spoken[] = [];
  const log: Log = { ...silentLog, warn: (message, fields) => void logged.push({ message, fields }) };
  const authorizer = new ProxyAuthorizer({
    clusterId: 'milan',
    targets: new Set([`${name}:6443`]),
    nonce,
    clock: systemClock,
    keysOf: (consumer) => (consumer === 'rome' ? [rome.publicKey] : []),
  });
  const upstream = { host: '127.0.0.1', port: server.port };
  const proxy = await startApiProxy({
    authorizer,
    nonce,
    credentialFor: (consumer) => ready[consumer],
    upstream,
    port: 0,
    host: '127.0.0.1',
    clock: systemClock,
    log,
    ...change,
  });
  closers.push(() => proxy.close());
  return { proxy, server, logged };
}

const tokens = (consumer = 'rome', privateKey = rome.privateKey) =>
  proxyTokens({ consumer, privateKey, nowMs: systemClock.now, newId: () => systemIds.next('jti') });

/** As an Identity of the consumer gives it. */
async function consumer(
  { port }: Pick<ApiProxy, 'port'>,
  { host = `${name}:6443`, proxyToken = tokens(), cluster = 'milan' } = {},
) {
  const kubeconfig = {
    clusters: [
      {
        name: cluster,
        cluster: {
          server: `https://${host}`,
          'certificate-authority-data': Buffer.from(certificate.certificate).toString('base64'),
          'proxy-url': `http://127.0.0.1:${port}`,
        },
      },
    ],
    users: [{ name: 'rome', user: {} }],
    contexts: [{ name: 'c', context: { cluster, user: 'rome' } }],
    'current-context': 'c',
  };
  const connection = await connectKubeconfig(JSON.stringify(kubeconfig), { proxyToken });
  closers.push(() => connection.close());
  return { connection, api: createKubeApi(connection, { clock: systemClock, log: silentLog }, { retries: 0 }) };
}

/** What the proxy answers to these bytes. */
function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (piece) => {
      text += piece;
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(text));
  });
}

test('a consumer reaches the API server and nothing in between reads along: its own name, its own certificate', async () => {
  const { proxy, server } = await startProxy();
  const { api } = await consumer(proxy);
  expect(await api.getPath('/version')).toBe('you asked for /version');
  expect([...server.names]).toEqual([name]);
  expect(proxy.open()).toEqual(new Map([['rome', 1]]));
});

test('exec and other streams pass as raw bytes, however long they are quiet', async () => {
  const { proxy } = await startProxy();
  const { connection } = await consumer(proxy);
  const request = openRequest(connection, {
    method: 'POST',
    path: '/exec',
    headers: { connection: 'Upgrade', upgrade: 'SPDY/3.1' },
    pooled: false,
  });
  const socket = await new Promise<Duplex>((resolve, reject) => {
    request.once('error', reject);
    request.once('upgrade', (_answer, stream) => resolve(stream));
    request.end();
  });
  const echoed = new Promise((resolve) => socket.once('data', (piece) => resolve(String(piece))));
  socket.write('ls\n');
  expect(await echoed).toBe('ls\n');
  socket.destroy();
  await eventually('the tunnel to go', async () => proxy.open().size === 0);
});

test('another run of the proxy is told from this one, and the consumer goes on by itself', async () => {
  const first = await startProxy({ nonce: 'the-nonce-of-one-run' });
  const { port } = first.proxy;
  const { api } = await consumer(first.proxy);
  expect(await api.getPath('/one')).toContain('/one');
  await first.proxy.close();
  await startProxy({ nonce: 'the-nonce-of-the-next', port });
  await eventually('an answer', async () => (await api.getPath('/two')) === 'you asked for /two');
});

test.each([
  { what: 'another destination', change: { host: '127.0.0.1:1' }, status: 403 },
  { what: 'a token of a stranger', change: { proxyToken: tokens('ghent') }, status: 407 },
  {
    what: 'a token by a stranger',
    change: { proxyToken: tokens('rome', generateKeyPairSync('ed25519').privateKey) },
    status: 407,
  },
  { what: 'a token that is for another cluster', change: { cluster: 'turin' }, status: 407 },
])('a consumer with $what gets $status, once and for all', async ({ change, status }) => {
  const { proxy, logged, server } = await startProxy();
  const { api } = await consumer(proxy, change);
  await expect(api.getPath('/version')).rejects.toMatchObject({
    code: 'kube_unreachable',
    message: expect.stringContaining(String(status)),
  });
  expect(server.names.size).toBe(0);
  expect(logged).toHaveLength(1);
  expect(JSON.stringify(logged)).not.toMatch(/Bearer|eyJ/);
});

const line = `CONNECT ${name}:6443 HTTP/1.1\r\nHost: x\r\n`;
test.each([
  {
    what: 'no token',
    bytes: `${line}\r\n`,
    status: 407,
    header: 'Proxy-Authenticate: Bearer realm="isthmus", nonce="a-nonce-of-this-run"',
  },
  { what: 'a plain request', bytes: 'GET http://169.254.169.254/ HTTP/1.1\r\nHost: x\r\n\r\n', status: 405 },
  { what: 'oversized headers', bytes: `${line}X-Large: ${'x'.repeat(20_000)}\r\n\r\n`, status: 431 },
  { what: 'no HTTP at all', bytes: '\u0016\u0003\u0001 hello\r\n\r\n', status: 400 },
])('$what is answered with $status and the connection closed', async ({ bytes, status, header = '' }) => {
  const { proxy } = await startProxy();
  const text = await raw(proxy.port, bytes);
  expect(text).toContain(`HTTP/1.1 ${status} `);
  expect(text).toContain(header);
});

test('a consumer gets the certificate that is ready for it and nothing else, and an unknown caller gets none', async () => {
  const { proxy } = await startProxy();
  const get = async (token: string | Promise<string>, path = '/certificate') =>
    raw(proxy.port, `GET ${path} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer ${await token}\r\n\r\n`);
  const token = () => tokens()('milan', 'a-nonce-of-this-run');
  expect(await get(token())).toMatch(/^HTTP\/1.1 200 .*\r\n\r\n.*the certificate of rome\n/s);
  const once = await token();
  await get(once);
  expect(await get(once)).toContain(' 407 ');
  expect(await get(tokens('ghent')('milan', 'a-nonce-of-this-run'))).toContain(' 407 ');
  expect(await get(token(), '/certificates')).toContain(' 405 ');
  const unknown = generateKeyPairSync('ed25519').privateKey;
  const answer = await get(tokens('rome', unknown)('milan', 'a-nonce-of-this-run'));
  expect(answer).toMatch(/^proxy-authenticate: Bearer realm="isthmus", nonce="a-nonce-of-this-run"\r$/im);
  expect(answer).not.toContain('the certificate');
});

test('a consumer that has no certificate is told so', async () => {
  const { proxy } = await startProxy({ credentialFor: () => undefined });
  const asked = askForCertificate(
    { host: '127.0.0.1', port: proxy.port },
    (nonce) => tokens()('milan', nonce),
    new AbortController().signal,
  );
  await expect(asked).rejects.toMatchObject({ code: 'kube_unreachable', message: expect.stringContaining('404') });
});

test('two headers with tokens are a bad token, also from an address that needs none', async () => {
  const authorizer = new ProxyAuthorizer({
    clusterId: 'milan',
    targets: new Set([`${name}:6443`]),
    nonce: 'a-nonce-of-this-run',
    clock: systemClock,
    keysOf: () => [rome.publicKey],
    consumerAt: () => 'rome',
  });
  const { proxy, server } = await startProxy({ authorizer });
  const token = async () => `Proxy-Authorization: Bearer ${await tokens()('milan', 'a-nonce-of-this-run')}\r\n`;
  for (const headers of [`${await token()}${await token()}`, 'Proxy-Authorization: a\r\nProxy-Authorization: b\r\n'])
    expect(await raw(proxy.port, `${line}${headers}\r\n`)).toMatch(/^HTTP\/1.1 407 /);
  expect(server.names.size).toBe(0);
});

test('a caller that sends its headers too slowly is let go', async () => {
  const { proxy } = await startProxy({ headersMs: 100 });
  expect(await raw(proxy.port, line)).toMatch(/^HTTP\/1.1 4\d\d /);
});

test('a caller gets a 200 only once the connection to the API server is open', async () => {
  const { proxy } = await startProxy({ upstream: { host: '127.0.0.1', port: 1 } });
  const { api } = await consumer(proxy);
  await expect(api.getPath('/version')).rejects.toMatchObject({ message: expect.stringContaining('502') });
  expect(proxy.open().size).toBe(0);
});

test('a consumer has so many connections and no more, and loses them with its rights', async () => {
  const { proxy } = await startProxy({ maxTunnels: 1 });
  const open = async () => {
    const head = `${line}Proxy-Authorization: Bearer ${await tokens()('milan', 'a-nonce-of-this-run')}\r\n\r\n`;
    return raw(proxy.port, head);
  };
  const first = open();
  await eventually('the first', async () => proxy.open().get('rome') === 1);
  expect(await open()).toContain(' 429 ');
  proxy.retain(() => true);
  expect(proxy.open().get('rome')).toBe(1);
  proxy.retain(() => false);
  expect(await first).toContain(' 200 ');
  await eventually('nothing open', async () => proxy.open().size === 0);
});

test('connections without a token end alone when only they are withdrawn', async () => {
  const { proxy } = await startProxy({
    authorizer: {
      authorize: async ({ authorization }) => ({
        pass: true,
        consumer: 'rome',
        purpose: 'api-server',
        ...(authorization === undefined && { byAddress: true }),
      }),
    },
  });
  const withToken = raw(proxy.port, `${line}Proxy-Authorization: Bearer x\r\n\r\n`);
  const without = raw(proxy.port, `${line}\r\n`);
  await eventually('both', async () => proxy.open().get('rome') === 2);
  proxy.retain((_consumer, byAddress) => !byAddress);
  expect(await without).toContain(' 200 ');
  await eventually('one left', async () => proxy.open().get('rome') === 1);
  proxy.retain(() => false);
  expect(await withToken).toContain(' 200 ');
});
