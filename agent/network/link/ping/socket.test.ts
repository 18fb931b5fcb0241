import dgram from 'node:dgram';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '#shared/ports/log.ts';
import type { PingMessage } from './message.ts';
import { createPingSocket, type PingSocket } from './socket.ts';

/** Another loopback address than the script's, on the same port: the protocol has one port for both ends. */
const ours = '127.0.99.1';
const theirs = '127.0.99.2';
let port: number;
let socket: PingSocket;
let script: dgram.Socket;
let inbox: string[];

beforeEach(async () => {
  inbox = [];
  script = dgram.createSocket('udp4');
  script.on('message', (datagram) => inbox.push(datagram.toString()));
  await new Promise<void>((resolve) => script.bind(0, theirs, resolve));
  port = script.address().port;
  socket = createPingSocket(silentLog, port);
  await socket.listenAt(ours);
});
afterEach(() => {
  socket.close();
  script.close();
});

const say = (text: string): void => script.send(text, port, ours);
async function heard(count: number): Promise<string[]> {
  await expect.poll(() => inbox.length, { timeout: 30_000 }).toBe(count);
  return inbox;
}

test('a script that speaks the JSON gets its ping back with the same text, also with an unknown ID; garbage gets nothing', async () => {
  say('garbage');
  say('{"clusterID":"x","msgType":"PONG","timeStamp":"t"}');
  say('{"clusterID":"cons","msgType":"PING","timeStamp":"2026-11-21T10:00:00.120000000+01:00"}');
  expect(await heard(1)).toEqual([
    '{"clusterID":"cons","msgType":"PONG","timeStamp":"2026-11-21T10:00:00.120000000+01:00"}',
  ]);
});

test('a padded ping is answered with the same size, so that the way back is tried, too', async () => {
  say('{"clusterID":"x","msgType":"PING","timeStamp":"t"}'.padEnd(1300));
  expect((await heard(1))[0]).toHaveLength(1300);
});

test('an answer reaches its subscribers, with the address that it came from', async () => {
  const answers: [string, PingMessage][] = [];
  const stop = socket.onPong((from, message) => answers.push([from, message]));
  socket.send(theirs, { clusterID: 'milan', msgType: 'PING', timeStamp: 't1' });
  expect(await heard(1)).toEqual(['{"clusterID":"milan","msgType":"PING","timeStamp":"t1"}']);
  say('{"clusterID":"milan","msgType":"PONG","timeStamp":"t1"}');
  await expect
    .poll(() => answers, { timeout: 30_000 })
    .toEqual([[theirs, { clusterID: 'milan', msgType: 'PONG', timeStamp: 't1' }]]);
  stop();
});

test('a ping that announces ranges is answered like any other, and subscribers receive the ranges', async () => {
  const told: unknown[] = [];
  const stop = socket.onPing((from, { ranges }) => told.push([from, ranges]));
  const ranges = { pod: ['10.1.0.0/16'], external: ['10.2.0.0/16'] };
  say(JSON.stringify({ clusterID: 'x', msgType: 'PING', timeStamp: 't', ranges }));
  expect(await heard(1)).toEqual(['{"clusterID":"x","msgType":"PONG","timeStamp":"t"}']);
  expect(told).toEqual([[theirs, ranges]]);
  stop();
});

test('an address that this machine does not have is refused, and can be listened at later', async () => {
  await expect(socket.listenAt('192.0.2.1')).rejects.toThrow('EADDRNOTAVAIL');
  await socket.listenAt(ours);
  say('{"clusterID":"x","msgType":"PING","timeStamp":"t"}');
  await heard(1);
});
