import { EventEmitter } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Server } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { connect as tlsConnect } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import { type ServingCertificates, servingCertificates } from './certificates.ts';
import { createTlsServer, type TlsServerOptions } from './tls-server.ts';

let dir: string;
let tls: ServingCertificates;
beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-tls-'));
  tls = await servingCertificates(dir, ['127.0.0.1'], Date.now());
});
afterAll(() => rm(dir, { recursive: true, force: true }));

let server: Server;
let clients: Socket[];
/** Of the server, below TLS. */
let accepted: Socket[];
async function serve(options: TlsServerOptions, answer: string | Buffer = 'served'): Promise<void> {
  server = createTlsServer(options);
  server.setSecureContext({ cert: tls.certPem, key: tls.keyPem });
  server.on('connection', (socket: Socket) => accepted.push(socket));
  server.on('request', (_request, response) => response.end(answer));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
}
beforeEach(() => {
  [clients, accepted] = [[], []];
});
afterEach(async () => {
  for (const client of clients) client.destroy();
  await new Promise((resolve) => server.close(resolve));
});

/** For connections that are to end by their deadlines. */
const hasty: TlsServerOptions = { handshakeMs: 300, silentMs: 400 };
/** For clients whose handshake is to succeed, however busy this machine is. */
const patientMs = 60_000;

/** A client that never closes its own half. */
async function client(): Promise<Socket> {
  const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true });
  clients.push(socket);
  socket.on('error', () => undefined);
  socket.resume();
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  return socket;
}

const connections = (): Promise<number> =>
  new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))));
/** All of `count` were accepted, which may be after their clients left, and none of them is held any more: each is a descriptor. */
const allFreed = (count: number) =>
  eventually(`${count} connections are accepted and freed`, async () => {
    if (accepted.length < count) return undefined;
    return (await connections()) === 0 && accepted.every(({ destroyed }) => destroyed);
  });

/** Begins like the first message of a handshake of 512 bytes. */
const halfHello = Buffer.from([0x16, 3, 1, 2, 0, 1]);

describe('a connection that never becomes a request gives its descriptor back', () => {
  const behaviours: readonly { readonly what: string; readonly act: (socket: Socket) => void }[] = [
    { what: 'says nothing', act: () => undefined },
    { what: 'speaks plain HTTP', act: (socket) => void socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n') },
    { what: 'stops within the handshake', act: (socket) => void socket.write(halfHello) },
    { what: 'closes its half at once', act: (socket) => void socket.end() },
    { what: 'closes its half within the handshake', act: (socket) => void socket.end(halfHello) },
    { what: 'is gone before the handshake', act: (socket) => void socket.destroy() },
    {
      what: 'resets within the handshake',
      act: (socket) => void socket.write(halfHello, () => socket.resetAndDestroy()),
    },
  ];
  test.each(behaviours)('when the client $what', async ({ act }) => {
    await serve(hasty);
    for (let i = 0; i < 20; i += 1) act(await client());
    await allFreed(20);
  });

  test('at the deadline of the handshake, without an answer', async () => {
    await serve(hasty);
    const ended: boolean[] = [];
    server.on('clientError', (_error, socket) => ended.push(socket.destroyed));
    let received = 0;
    const socket = await client();
    socket.on('data', (chunk) => {
      received += chunk.length;
    });
    await allFreed(1);
    expect([ended, received]).toEqual([[true], 0]);
  });

  test('when the client says nothing behind the handshake, and leaves or stays', async () => {
    await serve({ ...hasty, handshakeMs: patientMs });
    for (let i = 0; i < 10; i += 1) {
      const inner = await client();
      const socket = tlsConnect({ socket: inner, ca: tls.caPem, checkServerIdentity: () => undefined });
      socket.on('error', () => undefined);
      await new Promise((resolve) => socket.once('secureConnect', resolve));
      if (i % 2 === 0) socket.end();
    }
    await allFreed(10);
  });

  test('when the client asks and does not read the answer', async () => {
    // More than all buffers between the two take.
    await serve({ ...hasty, handshakeMs: patientMs }, Buffer.alloc(32 << 20));
    for (let i = 0; i < 3; i += 1) {
      const inner = await client();
      const socket = tlsConnect({ socket: inner, ca: tls.caPem, checkServerIdentity: () => undefined });
      socket.on('error', () => undefined);
      await new Promise((resolve) => socket.once('secureConnect', resolve));
      socket.pause();
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    }
    await allFreed(3);
  });

  test('beyond the limit of its address, at once, while the others stay', async () => {
    await serve({ handshakeMs: patientMs, maxFromOneAddress: 3 });
    for (let i = 0; i < 4; i += 1) await client();
    await eventually('the fourth is closed', async () => (accepted[3]?.destroyed ? true : undefined));
    expect(accepted.map(({ destroyed }) => destroyed)).toEqual([false, false, false, true]);
    clients[0]?.destroy();
    await eventually('the first is gone', async () => (accepted[0]?.destroyed ? true : undefined));
    await client();
    await eventually('a fifth is accepted', async () => (accepted.length === 5 ? true : undefined));
    expect(accepted[4]?.destroyed).toBe(false);
  });

  test('beyond the limit of its /64, whichever of its addresses it comes from', async () => {
    await serve({ maxFromOneAddress: 3 });
    const [limit] = server.listeners('connection');
    const refused = (remoteAddress: string): boolean => {
      let isClosed = false;
      const destroy = (): void => {
        isClosed = true;
      };
      const socket = Object.assign(new EventEmitter(), { remoteAddress, destroy });
      limit?.call(server, socket);
      return isClosed;
    };
    const addresses = [1, 2, 3, 4].map((n) => `2001:db8::${n}`);
    expect([...addresses, '2001:db8:0:1::1', '::ffff:192.0.2.1', '192.0.2.2'].map(refused)).toEqual([
      ...[false, false, false, true],
      ...[false, false, false],
    ]);
  });

  test('300 of them, and the next client is served', async () => {
    await serve(hasty);
    await Promise.all(Array.from({ length: 300 }, () => client()));
    await allFreed(300);
    /** Empty when this machine is too busy for a handshake within the deadline of the others. */
    const ask = () =>
      new Promise<string>((resolve) => {
        const socket = tlsConnect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', ca: tls.caPem });
        let answer = '';
        socket.on('data', (chunk) => {
          answer += chunk.toString();
        });
        socket.on('error', () => undefined);
        socket.on('close', () => resolve(answer));
        socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
      });
    await eventually('an answer', async () => (await ask()).includes('served'));
  });

  test('after an answer to what is no HTTP, when the client keeps its half open', async () => {
    await serve({ handshakeMs: patientMs, silentMs: patientMs });
    const inner = await client();
    const socket = tlsConnect({ socket: inner, ca: tls.caPem, checkServerIdentity: () => undefined });
    clients.push(socket);
    socket.on('error', () => undefined);
    const answer = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())));
    socket.write('nonsense\r\n\r\n');
    expect(await answer).toContain('HTTP/1.1 400');
    await allFreed(1);
  });
});
