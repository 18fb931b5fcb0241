import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import { heldFor, sendInPieces } from './answer-pieces.ts';
import { fromGatewayResult } from './gateway-event.ts';

let server: Server | undefined;
let client: Socket | undefined;
afterEach(async () => {
  client?.destroy();
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
});

/** A client that has asked and reads nothing yet, and its connection at the server. */
async function asked(body: Buffer): Promise<{ readonly client: Socket; readonly served: Socket }> {
  let served: Socket | undefined;
  server = createServer((request, response) => {
    served = request.socket;
    response.writeHead(200, { 'content-length': body.length, connection: 'close' });
    sendInPieces(response, body);
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client = socket;
  socket.on('error', () => undefined);
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  return { client: socket, served: await eventually('a request', async () => served) };
}

test.each([0, 1, 65_536, 65_537, 1_000_000])('an answer of %i bytes arrives whole', async (length) => {
  const body = Buffer.from(Array.from({ length }, (_, i) => i % 251));
  const { client: reading } = await asked(body);
  const chunks: Buffer[] = [];
  reading.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise((resolve) => reading.once('end', resolve));
  reading.resume();
  await ended;
  const received = Buffer.concat(chunks);
  expect(received.subarray(received.indexOf('\r\n\r\n') + 4).equals(body)).toBe(true);
});

test('of an answer that is not read little is written ahead, and all of it is known to be held', async () => {
  // More than all buffers between the two take.
  const body = Buffer.alloc(64 << 20);
  const { client: silent, served } = await asked(body);
  await eventually('the buffers are full', async () => (served.writableNeedDrain ? true : undefined));
  expect(served.writableLength).toBeLessThan(1 << 20);
  expect(heldFor(served)).toBeGreaterThan(32 << 20);
  const ended = new Promise((resolve) => silent.once('end', resolve));
  silent.resume();
  await ended;
  expect([silent.bytesRead > body.length, heldFor(served)]).toEqual([true, 0]);
});

test('the bytes of an answer that any cache may keep are the same for all clients, and those of others are not', () => {
  const bodyOf = (cacheControl: string, body: string): Buffer =>
    fromGatewayResult({ statusCode: 200, headers: { 'cache-control': cacheControl }, body }).body;
  const [one, two] = ['some text', ['some', 'text'].join(' ')];
  expect(bodyOf('public, max-age=300', one)).toBe(bodyOf('public, max-age=300', two));
  expect(bodyOf('public, max-age=300', 'other').toString()).toBe('other');
  expect(bodyOf('no-store', one)).not.toBe(bodyOf('no-store', one));
});
