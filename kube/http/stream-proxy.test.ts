import { once } from 'node:events';
import * as http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { type Duplex, Writable } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import type { ClusterConnection } from './connection.ts';
import { passPlain, passUpgrade } from './stream-proxy.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function listen(server: http.Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

interface Provider {
  readonly connection: ClusterConnection;
  readonly open: Set<Duplex>;
  readonly server: http.Server;
}

/** An API server of which only the streams matter. */
async function provider(
  onStream: (socket: Duplex) => void,
  onRequest: http.RequestListener = () => undefined,
): Promise<Provider> {
  const open = new Set<Duplex>();
  const server = http.createServer(onRequest);
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.on('upgrade', (request, socket: Duplex) => {
    socket.on('error', () => socket.destroy());
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\n\r\n`,
    );
    onStream(socket);
  });
  const port = await listen(server);
  const agent = new http.Agent({ keepAlive: true });
  closers.push(() => agent.destroy());
  const connection: ClusterConnection = {
    server: new URL(`http://127.0.0.1:${port}`),
    ca: undefined,
    namespace: undefined,
    agent,
    headers: () => ({}),
    authorize: async () => undefined,
    close: () => agent.destroy(),
  };
  return { connection, open, server };
}

interface Front {
  readonly port: number;
  /** How each passed request ended. */
  readonly ends: string[];
  /** Connections of clients. */
  readonly open: Set<Duplex>;
  readonly stop: AbortController;
}

/** `admission`: what a request waits for before it is passed on. */
async function front(
  { connection }: Provider,
  admission: (request: http.IncomingMessage) => Promise<unknown> = async () => undefined,
  answerMs?: number,
): Promise<Front> {
  const ends: string[] = [];
  const stop = new AbortController();
  const note = (what: Promise<void>): void =>
    void what.then(
      () => ends.push('ended'),
      (error: Error) => ends.push(error.message),
    );
  const server = http.createServer((request, response) =>
    note(admission(request).then(() => passPlain(connection, '/x', request, response, stop.signal))),
  );
  const open = new Set<Duplex>();
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.on('upgrade', (request, socket, head) =>
    note(passUpgrade(connection, '/x', { request, client: socket, head }, stop.signal, answerMs)),
  );
  return { port: await listen(server), ends, open, stop };
}

async function dial(port: number): Promise<net.Socket> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  closers.push(() => socket.destroy());
  socket.on('error', () => undefined);
  socket.write('POST /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
  const head = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
  const end = head.indexOf('\r\n\r\n') + 4;
  socket.pause();
  if (end < head.length) socket.unshift(head.subarray(end));
  expect(head.toString('latin1', 0, end)).toMatch(/^HTTP\/1.1 101 .*\r\n(.*\r\n)*Upgrade: SPDY\/3.1\r\n/i);
  return socket;
}

/** Reads and forgets; closes when the other side has. */
const sink = (socket: Duplex): void => void socket.resume().once('end', () => socket.end());

/** Not by `for await`: on Node 20 that destroys a socket whose other half is still to be written. */
function readAll(socket: Duplex): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (socket.readableEnded) return resolve(Buffer.alloc(0));
    if (socket.destroyed) return reject(new Error('closed already'));
    const pieces: Buffer[] = [];
    socket.on('data', (piece: Buffer) => pieces.push(piece));
    socket.once('end', () => resolve(Buffer.concat(pieces)));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed before its end')));
    socket.resume();
  });
}

test('the answer to a half-closed stream still arrives, and then nothing is open', async () => {
  const far = await provider(async (socket) => socket.end(`read ${(await readAll(socket)).length} bytes`));
  const { port, ends } = await front(far);
  const socket = await dial(port);
  socket.end('x'.repeat(3_000_000));
  expect((await readAll(socket)).toString()).toBe('read 3000000 bytes');
  await eventually('the end', () => ends.length === 1 && far.open.size === 0);
  expect(ends).toEqual(['ended']);
});

test('what was sent before the far end closed arrives whole', async () => {
  const far = await provider((socket) => socket.end(Buffer.alloc(5_000_000, 1)));
  const { port, ends } = await front(far);
  const socket = await dial(port);
  expect(await readAll(socket)).toHaveLength(5_000_000);
  socket.end();
  await eventually('the end', () => ends.length === 1);
});

test('a client that breaks off closes the stream at the provider', async () => {
  const far = await provider(sink);
  const { port, ends } = await front(far);
  const socket = await dial(port);
  socket.resetAndDestroy();
  await eventually('the end', () => ends.length === 1 && far.open.size === 0);
});

test('a provider that breaks off closes the stream of the client', async () => {
  const far = await provider((socket) => setImmediate(() => (socket as net.Socket).resetAndDestroy()));
  const { port, ends } = await front(far);
  const socket = await dial(port);
  await readAll(socket).catch(() => undefined);
  socket.end(); // Node 20 reports the reset as an end, which leaves this half open
  await eventually('the end', () => ends.length === 1);
});

test('a reader that does not read stops the provider instead of filling memory', async () => {
  let written = 0;
  const far = await provider((socket) => {
    const piece = Buffer.alloc(256 * 1024);
    const pump = (): void => {
      if (written >= 400 * piece.length || socket.destroyed) return void socket.end();
      written += piece.length;
      socket.write(piece, pump);
    };
    pump();
  });
  const { port } = await front(far);
  const socket = await dial(port);
  socket.pause();
  let last = -1;
  await eventually(
    'the pump stands still',
    () => {
      const still = written === last;
      last = written;
      return still;
    },
    { everyMs: 200 },
  );
  expect(written).toBeLessThan(60 * 1024 * 1024);
  const whole = await readAll(socket);
  expect(whole.length).toBeGreaterThan(90 * 1024 * 1024);
});

test('stopping ends every stream on both sides', async () => {
  const far = await provider(sink);
  const { port, ends, stop } = await front(far);
  const socket = await dial(port);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.resume();
  stop.abort();
  socket.once('end', () => socket.end());
  await closed;
  await eventually('the end', () => ends.length === 1 && far.open.size === 0);
});

test('a provider that is not there is reported before anything is written', async () => {
  const far = await provider(() => undefined);
  const dead: Provider = { ...far, connection: { ...far.connection, server: new URL('http://127.0.0.1:1') } };
  const { port, ends } = await front(dead);
  const socket = net.connect(port, '127.0.0.1');
  closers.push(() => socket.destroy());
  socket.write('POST /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
  await eventually('the report', () => ends.length === 1);
  expect(ends[0]).toContain('ECONNREFUSED');
});

test("a plain answer passes with the provider's status, and its break is the reader's break", async () => {
  let broken = false;
  const far = await provider(
    () => undefined,
    (_, response) => {
      response.writeHead(418, { 'content-type': 'text/x-log', connection: 'keep-alive' });
      response.write('half');
      if (broken) setImmediate(() => response.destroy());
      else response.end(' and half');
    },
  );
  const { port, ends } = await front(far);
  const whole = await fetch(`http://127.0.0.1:${port}/`);
  expect([whole.status, whole.headers.get('content-type'), await whole.text()]).toEqual([
    418,
    'text/x-log',
    'half and half',
  ]);
  broken = true;
  await expect(fetch(`http://127.0.0.1:${port}/`).then((answer) => answer.text())).rejects.toThrow();
  await eventually('both ended', () => ends.length === 2);
});

test.each(['with its length', 'in pieces'])(
  'the end of an answer %s is not sent together with its last piece: kube-apiserver would drop that of a log that it passes on by WebSocket',
  async (how) => {
    const far = await provider(
      () => undefined,
      (_, response) => {
        if (how === 'in pieces') response.flushHeaders();
        response.end('the last line\n');
      },
    );
    const writes: string[] = [];
    const socket = new Writable({
      writev(pieces, done) {
        writes.push(pieces.map(({ chunk }) => String(chunk)).join(''));
        setImmediate(done);
      },
    });
    const request = Object.assign(new http.IncomingMessage(new net.Socket()), {
      method: 'GET',
      httpVersionMajor: 1,
      httpVersionMinor: 1,
    });
    const response = new http.ServerResponse(request);
    response.assignSocket(socket as net.Socket);
    await passPlain(far.connection, '/', request, response, new AbortController().signal);
    await eventually('the end', () => writes.join('').endsWith('0\r\n\r\n'));
    expect(writes.at(-1)).toBe('0\r\n\r\n');
    expect(writes.slice(0, -1).join('')).toContain('the last line\n');
  },
);

test('a reader that left while it was being authorized leaves no log followed at the provider', async () => {
  const far = await provider(
    () => undefined,
    (_, response) => void response.write('a log that goes on'),
  );
  const { port, ends } = await front(far, async ({ socket }) => {
    reader.destroy();
    await once(socket, 'close');
  });
  const reader = net.connect(port, '127.0.0.1');
  closers.push(() => reader.destroy());
  reader.write('GET /x HTTP/1.1\r\nHost: x\r\n\r\n');
  await eventually('the end', () => ends.length === 1 && far.open.size === 0, { withinMs: 5_000 });
  expect(ends).toEqual(['ended']);
});

test('a client that is refused an upgrade reads why, and is not kept although it keeps its own side open', async () => {
  const far = await provider(() => undefined);
  far.server.removeAllListeners('upgrade').on('request', (_, response) => response.writeHead(403).end('you may not'));
  const { port, open, ends } = await front(far);
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  closers.push(() => socket.destroy());
  socket.write('POST /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
  expect((await readAll(socket)).toString()).toMatch(/^HTTP\/1.1 403 .*you may not$/s);
  await eventually('the end', () => ends.length === 1 && open.size === 0, { withinMs: 5_000 });
});

test('an answer without end to an upgrade is given up before it fills memory', async () => {
  const far = await provider(() => undefined);
  far.server.removeAllListeners('upgrade').on('request', (_, response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536)));
    };
    response.on('drain', more);
    more();
  });
  const { port, ends } = await front(far);
  const socket = net.connect(port, '127.0.0.1');
  closers.push(() => socket.destroy());
  socket.write('GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: any\r\n\r\n');
  await eventually('the report', () => ends.length === 1 && far.open.size === 0, { withinMs: 5_000 });
  expect(ends[0]).toBe('no upgrade, but an answer of more than 1048576 bytes');
});

test('a provider that takes an exec and never answers is given up, and nothing stays open to it', async () => {
  const far = await provider(() => undefined);
  far.server.removeAllListeners('upgrade').on('upgrade', (_, socket: Duplex) => socket.resume());
  const { port, ends } = await front(far, undefined, 200);
  const socket = net.connect(port, '127.0.0.1');
  closers.push(() => socket.destroy());
  socket.write('POST /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
  await eventually('the report', () => ends.length === 1, { withinMs: 5_000 });
  expect(ends[0]).toMatch(/^http:.* did not answer POST \/x within 0.2 s$/);
  for (const one of far.open) one.end();
  await eventually('the end', () => far.open.size === 0, { withinMs: 5_000 });
});
