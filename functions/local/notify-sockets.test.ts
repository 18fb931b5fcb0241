import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { eventually } from '#test/harness/eventually.ts';
import { handleInTurn } from './notify-sockets.ts';

let server: Server | undefined;
let client: WebSocket | undefined;
afterEach(async () => {
  client?.terminate();
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
});

test('of a client that sends faster than its frames are handled no more is read than came together, and in the end all of it in order', async () => {
  const frames = 800;
  const begun: number[] = [];
  let letGo: () => void = () => undefined;
  const turn = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  server = createServer();
  new WebSocketServer({ server }).on('connection', (socket) =>
    handleInTurn(socket, (data) => {
      begun.push(Number.parseInt(data.toString(), 10));
      return turn;
    }),
  );
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const sending = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  client = sending;
  await new Promise((resolve) => sending.once('open', resolve));
  const text = (n: number): string => `${n} ${'x'.repeat(20_000)}`;
  for (let n = 0; n < frames; n += 1) sending.send(text(n));
  // More than all buffers between the two take, so the client is left with some of it.
  await eventually('the first frames', async () => (begun.length > 0 ? true : undefined));
  let before = -1;
  await eventually('nothing more is read', async () => {
    const same = begun.length === before && sending.bufferedAmount > 0;
    before = begun.length;
    return same ? true : undefined;
  });
  expect(begun.length).toBeLessThan(50);
  letGo();
  await eventually('all frames', async () => (begun.length === frames ? true : undefined));
  expect(begun).toEqual(Array.from({ length: frames }, (_, n) => n));
});
