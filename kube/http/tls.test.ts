import * as http from 'node:http';
import type net from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import { connectionPoolOf } from './connection-pool.ts';
import { createAgent } from './tls.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

test('a proxy whose tunnel stays silent keeps no connection open', async () => {
  const open = new Set<net.Socket>();
  const proxy = http.createServer().on('connect', (_, socket: net.Socket) => {
    open.add(socket);
    socket
      .on('error', () => undefined)
      .on('end', () => socket.end())
      .on('close', () => open.delete(socket));
    socket.resume().write('HTTP/1.1 200 OK\r\n\r\n');
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of open) socket.destroy();
    proxy.close();
  });
  const { port } = proxy.address() as net.AddressInfo;
  const server = new URL('https://192.0.2.1');
  const agent = createAgent(server, {}, { proxy: new URL(`http://127.0.0.1:${port}`), openingMs: 300 });
  const failed = new Promise<Error>((resolve) =>
    connectionPoolOf(agent, server, () => 0).send('GET / HTTP/1.1\r\n\r\n', {
      piece: () => undefined,
      answered: () => resolve(new Error('answered')),
      failed: resolve,
    }),
  );
  await eventually('the way', () => open.size === 1);
  expect((await failed).message).toBe(`no server answers behind the proxy 127.0.0.1:${port} within 0.3 s`);
  await eventually('the end of the connection', () => open.size === 0);
});

test.each([
  { what: 'directly', route: undefined },
  { what: 'behind a proxy', route: { proxy: new URL('http://127.0.0.1:9') } },
])('a certificate that cannot be read fails the request, $what', async ({ route }) => {
  const server = new URL('https://127.0.0.1:9');
  const agent = createAgent(server, { cert: 'no certificate', key: 'no key' }, route);
  const failed = new Promise<Error>((resolve) =>
    connectionPoolOf(agent, server, () => 0).send('GET / HTTP/1.1\r\n\r\n', {
      piece: () => undefined,
      answered: () => resolve(new Error('answered')),
      failed: resolve,
    }),
  );
  expect((await failed).message).toMatch(/PEM|no start line/i);
});
