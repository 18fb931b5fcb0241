/** The doorbell against a real WebSocket server, behind a real proxy, on a manual clock. */
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect as connectTcp } from 'node:net';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { AgentFrame } from '#shared/schema/protocol/agent-protocol.ts';
import { createDoorbell } from './notify-socket.ts';
import { createIntervals } from './poll-interval.ts';
import { createBrokerClient } from './signed-client.ts';

const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

const listen = (server: Server): Promise<number> =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)));

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`not within 10 s: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function bell() {
  const sockets: WebSocket[] = [];
  const frames: AgentFrame[] = [];
  /** Most sockets that were open at a time, and whether there was a moment without any after the first. */
  let gap = false;
  const http = createServer((_request, response) => response.writeHead(404).end());
  const server = new WebSocketServer({ server: http });
  server.on('connection', (socket) => {
    sockets.push(socket);
    socket.on('message', (data) => frames.push(JSON.parse(String(data))));
    socket.on('close', () => {
      gap ||= server.clients.size === 0;
    });
  });
  const port = await listen(http);
  ending.push(() => {
    for (const socket of server.clients) socket.terminate();
    http.close();
  });
  return { port, sockets, frames, server, hadGap: () => gap };
}

interface Setup {
  readonly port: number;
  readonly random?: () => number;
  readonly told?: boolean;
}

function agent({ port, random = () => 0.5, told = true }: Setup) {
  const clock = new ManualClock();
  const ids = { next: (prefix: string) => `${prefix}_0123456789abcdef`, bytes: (n: number) => new Uint8Array(n) };
  const { privateKey } = generateKeyPairSync('ed25519');
  const identity = { url: `http://127.0.0.1:${port}`, tenant: 'default', clusterId: 'rome', privateKey };
  const intervals = createIntervals();
  if (told) intervals.adopt({ heartbeatSeconds: 300, pollSeconds: 60, protocolVersion: 2 });
  const seen = { rings: 0, changes: 0, revision: 7 };
  const client = createBrokerClient(identity, { clock, ids });
  const doorbell = createDoorbell({
    client,
    clock,
    log: silentLog,
    intervals,
    random,
    revision: () => seen.revision,
    onRing: () => {
      seen.rings += 1;
    },
    onChange: () => {
      seen.changes += 1;
    },
  });
  const stop = new AbortController();
  const done = doorbell.run(stop.signal);
  ending.push(async () => {
    stop.abort();
    await done;
    client.close();
  });
  return { clock, intervals, seen, doorbell };
}

test('rings when it opens, on a ring of the broker, and when a pong has a newer revision', async () => {
  const { port, sockets } = await bell();
  const { doorbell, seen, intervals } = agent({ port });
  await until('it to open', () => doorbell.connected());
  expect(seen).toMatchObject({ rings: 1, changes: 1 });
  sockets[0]?.send(JSON.stringify({ type: 'desired', revision: 8 }));
  await until('the ring', () => seen.rings === 2);
  sockets[0]?.send('not JSON');
  sockets[0]?.send(JSON.stringify({ type: 'pong', revision: 7, heartbeatSeconds: 15, pollSeconds: 5 }));
  await until('the new intervals', () => intervals.heartbeatMs() === 15_000);
  expect([seen.rings, intervals.pollMs()]).toEqual([2, 5_000]);
  sockets[0]?.send(JSON.stringify({ type: 'pong', revision: 9 }));
  await until('the ring of the pong', () => seen.rings === 3);
});

test('pings at the interval that the broker sets, at once when that becomes shorter, and every eighth ping asks for an answer', async () => {
  const { port, sockets, frames } = await bell();
  const { doorbell, clock, intervals } = agent({ port });
  await until('it to open', () => doorbell.connected() && clock.sleeping >= 2);
  clock.advance(299_000);
  expect(frames).toEqual([]);
  clock.advance(1_000);
  await until('the first ping', () => frames.length === 1);
  expect(frames[0]).toEqual({ type: 'ping', revision: 7, heartbeatSeconds: 300 });
  clock.advance(20_000);
  intervals.adopt({ heartbeatSeconds: 15 });
  await until('the second ping, which was due', () => frames.length === 2);
  for (const count of [3, 4, 5, 6, 7, 8]) {
    await until('the next sleep', () => clock.sleeping >= 2);
    clock.advance(15_000);
    await until('the next ping', () => frames.length === count);
  }
  expect(frames.map(({ answer }) => answer === true)).toEqual([...Array(7).fill(false), true]);
  expect(sockets).toHaveLength(1);
});

test('a connection that gives no answer is left, and the next one rings', async () => {
  const { port, sockets, frames } = await bell();
  const { doorbell, clock, seen } = agent({ port });
  for (const count of [1, 2, 3, 4, 5, 6, 7, 8]) {
    await until('it to wait', () => doorbell.connected() && clock.sleeping >= 2);
    clock.advance(300_000);
    await until('a ping', () => frames.length === count);
  }
  await until('it to wait for the answer', () => clock.sleeping >= 3);
  clock.advance(60_000);
  await until('it to leave', () => !doorbell.connected());
  await until('it to wait before it tries again', () => clock.sleeping === 1);
  clock.advance(1_000);
  await until('the second connection', () => sockets.length === 2 && doorbell.connected());
  expect(seen).toMatchObject({ rings: 2, changes: 3 });
});

test('brokers before version 2 are pinged every 25 s and must always answer', async () => {
  const { port, frames, sockets } = await bell();
  const { doorbell, clock } = agent({ port, told: false });
  await until('it to open', () => doorbell.connected() && clock.sleeping >= 2);
  clock.advance(25_000);
  await until('a ping', () => frames.length === 1);
  expect(frames[0]).toMatchObject({ type: 'ping', answer: true });
  sockets[0]?.send(JSON.stringify({ type: 'pong' }));
  await until('the next sleep', () => clock.sleeping >= 3);
  expect(doorbell.connected()).toBe(true);
});

test('before two hours it opens the next connection, and only then closes the old one', async () => {
  const { port, sockets, server, hadGap } = await bell();
  const { doorbell, clock, seen } = agent({ port });
  for (const count of [1, 2, 3]) {
    await until('it to open', () => sockets.length === count && server.clients.size === 1 && clock.sleeping >= 2);
    expect(doorbell.connected()).toBe(true);
    clock.advance(115 * 60_000);
  }
  await until('a fourth', () => sockets.length === 4 && server.clients.size === 1);
  expect([hadGap(), seen.changes]).toEqual([false, 1]);
});

test('comes back anywhere in a window that doubles up to two minutes', async () => {
  const closed = createServer();
  const port = await listen(closed);
  await new Promise((resolve) => closed.close(resolve));
  const asked: number[] = [];
  const draws = [0.9, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9];
  const { clock } = agent({ port, random: () => draws.shift() ?? 0.9 });
  const sleep = clock.sleep.bind(clock);
  clock.sleep = (ms, signal) => {
    asked.push(Math.round(ms));
    return sleep(ms, signal);
  };
  for (const count of [1, 2, 3, 4, 5, 6, 7, 8]) {
    await until('the next pause', () => asked.length === count && clock.sleeping === 1);
    clock.advance(120_000);
  }
  expect(asked).toEqual([1_800, 400, 7_200, 14_400, 28_800, 57_600, 108_000, 108_000]);
});

test('waits 30 s before it connects again after a request to slow down', async () => {
  const pauses: number[] = [];
  const http = createServer();
  http.on('upgrade', (_request, raw) => raw.end('HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\n\r\n'));
  ending.push(() => http.close());
  const { clock } = agent({ port: await listen(http) });
  const sleep = clock.sleep.bind(clock);
  clock.sleep = (ms, signal) => {
    pauses.push(ms);
    return sleep(ms, signal);
  };
  await until('the pause', () => pauses.length === 1);
  expect(pauses).toEqual([30_000]);
});

test('behind a proxy that refuses upgrades it stays away and says so, and opens as soon as they pass', async () => {
  const { port: behind, sockets } = await bell();
  let refuse = true;
  let refused = 0;
  const proxy = createServer();
  proxy.on('upgrade', (request, raw, head) => {
    if (refuse) {
      refused += 1;
      return raw.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    }
    const through = connectTcp(behind, '127.0.0.1', () => {
      const fields = request.rawHeaders.flatMap((name, i, all) => (i % 2 === 0 ? [`${name}: ${all[i + 1]}`] : []));
      through.write(`GET ${request.url} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
      through.write(head);
      raw.pipe(through).pipe(raw);
    });
    for (const end of [raw, through]) end.on('error', () => undefined);
  });
  const port = await listen(proxy);
  ending.push(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const { doorbell, clock, seen } = agent({ port });
  for (const count of [1, 2, 3]) {
    await until('a refusal', () => refused === count && clock.sleeping === 1);
    expect([doorbell.connected(), seen.changes]).toEqual([false, 0]);
    clock.advance(120_000);
  }
  await until('a fourth refusal', () => refused === 4 && clock.sleeping === 1);
  refuse = false;
  clock.advance(120_000);
  await until('it to open', () => doorbell.connected());
  expect([sockets.length, seen.rings]).toEqual([1, 1]);
});

test('an agent that gets any frames from its broker stays on its connection, keeps sane intervals, and hears the next ring', async () => {
  const { port, sockets } = await bell();
  const { doorbell, seen, intervals } = agent({ port });
  await until('it to open', () => doorbell.connected());
  const number = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(0, -1, 1, 2, 1e9, 1e15, Number.MAX_SAFE_INTEGER));
  const value = fc.oneof(number, fc.jsonValue({ maxDepth: 2 }));
  const like = fc.record(
    {
      type: fc.constantFrom('pong', 'pong', 'desired', 'ping', '__proto__', null),
      revision: value,
      heartbeatSeconds: value,
      pollSeconds: value,
      protocolVersion: value,
    },
    { requiredKeys: ['type'] },
  );
  const frame = fc.oneof(
    like.map((one) => JSON.stringify(one)),
    fc.jsonValue().map((one) => JSON.stringify(one)),
    fc.string({ maxLength: 200 }),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  );
  for (const one of fc.sample(frame, 3_000)) sockets[0]?.send(one);
  sockets[0]?.send(JSON.stringify({ type: 'pong', heartbeatSeconds: 15, pollSeconds: 5, protocolVersion: 2 }));
  await until('the last pong', () => intervals.heartbeatMs() === 15_000);
  const rings = seen.rings;
  sockets[0]?.send(JSON.stringify({ type: 'desired', revision: 8 }));
  await until('the ring', () => seen.rings === rings + 1);
  expect([sockets.length, doorbell.connected()]).toEqual([1, true]);
});

test('an interval beyond a day is not taken over', async () => {
  const { port, sockets } = await bell();
  const { doorbell, intervals } = agent({ port });
  await until('it to open', () => doorbell.connected());
  sockets[0]?.send(JSON.stringify({ type: 'pong', heartbeatSeconds: 1e12, pollSeconds: 5 }));
  sockets[0]?.send(JSON.stringify({ type: 'pong', heartbeatSeconds: 86_400, pollSeconds: 5 }));
  await until('the second pong', () => intervals.heartbeatMs() === 86_400_000);
});
