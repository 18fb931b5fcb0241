import * as http from 'node:http';
import net from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import { type ConnectionPool, connectionPoolOf, type Sending } from './connection-pool.ts';

/** What the server has heard on each of its connections, and what it answers. */
let connections: net.Socket[] = [];
/** The same connections, at this end. */
let own: net.Socket[] = [];
let requests: string[] = [];
let answers: (string | undefined)[] = [];
let server: net.Server;
let agent: http.Agent;
let pool: ConnectionPool;
let now = 0;

const ok = (body: string): string => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const get = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

beforeEach(async () => {
  connections = [];
  own = [];
  requests = [];
  answers = [];
  now = 0;
  server = net.createServer((socket) => {
    connections.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      requests.push(bytes.toString());
      const answer = answers.shift();
      if (answer !== undefined) socket.write(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  agent = new http.Agent({ keepAlive: true });
  const create = agent.createConnection.bind(agent);
  agent.createConnection = (options) => {
    const socket = create(options) as net.Socket;
    own.push(socket);
    return socket;
  };
  pool = connectionPoolOf(agent, new URL(`http://127.0.0.1:${(server.address() as net.AddressInfo).port}`), () => now);
});
afterEach(() => {
  agent.destroy();
  for (const socket of connections) socket.destroy();
  server.close();
});

function send(): { readonly sending: Sending; readonly text: Promise<string> } {
  let settle: { resolve: (text: string) => void; reject: (error: Error) => void };
  const text = new Promise<string>((resolve, reject) => {
    settle = { resolve, reject };
  });
  text.catch(() => undefined);
  const sending = pool.send(get, {
    piece: () => undefined,
    answered: (answer) => settle.resolve(answer.text()),
    failed: (error) => settle.reject(error),
  });
  return { sending, text };
}

describe('a connection', () => {
  test('serves one request after the other, and several are opened only for several at a time', async () => {
    answers = ['a', 'b', 'c', 'd'].map(ok);
    expect(await send().text).toBe('a');
    const second = send();
    expect([second.sending.reused, await second.text]).toEqual([true, 'b']);
    expect(connections).toHaveLength(1);
    const both = [send(), send()];
    expect(both.map(({ sending }) => sending.reused)).toEqual([true, false]);
    expect((await Promise.all(both.map(({ text }) => text))).sort()).toEqual(['c', 'd']);
    expect(connections).toHaveLength(2);
  });

  test.each([
    { which: 'that the server closes', answer: 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na' },
    { which: 'over which more came than was asked for', answer: `${ok('a')}HTTP/1.1 408 Timeout\r\n\r\n` },
  ])('$which serves no other request', async ({ answer }) => {
    answers = [answer, ok('b')];
    expect(await send().text).toBe('a');
    const next = send();
    expect([next.sending.reused, await next.text]).toEqual([false, 'b']);
  });

  test.each([
    { how: 'closed', what: (socket: net.Socket) => void socket.end() },
    { how: 'reset', what: (socket: net.Socket) => void socket.resetAndDestroy() },
    { how: 'spoken on', what: (socket: net.Socket) => void socket.write('HTTP/1.1 408 Timeout\r\n\r\n') },
  ])('that is $how while idle is not used again', async ({ what }) => {
    answers = [ok('a'), ok('b')];
    await send().text;
    for (const socket of connections) what(socket);
    await eventually('its end', () => own[0]?.destroyed === true);
    const next = send();
    expect([next.sending.reused, await next.text]).toEqual([false, 'b']);
  });

  test('that was idle for 45 s is not used again, for it may be dead', async () => {
    answers = [ok('a'), ok('b')];
    await send().text;
    now += 45_001;
    const next = send();
    expect([next.sending.reused, await next.text]).toEqual([false, 'b']);
    await eventually('the old one is closed', () => connections[0]?.destroyed === true);
  });

  test('that ends before its answer does fails the request; one without a length is whole then', async () => {
    const broken = send();
    await eventually('the request', () => requests.length === 1);
    connections[0]?.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
    await expect(broken.text).rejects.toThrow('the answer broke off');
    const whole = send();
    await eventually('the request', () => requests.length === 2);
    connections[1]?.end('HTTP/1.1 200 OK\r\n\r\nwhole');
    expect(await whole.text).toBe('whole');
  });

  test('to something else than an HTTP server fails the request', async () => {
    answers = ['SSH-2.0-OpenSSH_9.2\r\n\r\n'];
    await expect(send().text).rejects.toThrow('no HTTP answer: "SSH-2.0-OpenSSH_9.2"');
  });

  test('ends with the agent that it came from: at once if it is idle, else after its answer', async () => {
    answers = [ok('a'), undefined, ok('b')];
    await send().text;
    const last = send();
    expect(await send().text).toBe('b');
    agent.destroy();
    expect(own.map(({ destroyed }) => destroyed)).toEqual([false, true]);
    connections[0]?.write(ok('c'));
    expect(await last.text).toBe('c');
    expect(own[0]?.destroyed).toBe(true);
  });
});

describe('a request that is broken off', () => {
  test('fails with the reason given, and its connection ends', async () => {
    const { sending, text } = send();
    await eventually('the request', () => requests.length === 1);
    sending.abort(new Error('enough'));
    await expect(text).rejects.toThrow('enough');
    await eventually('its end', () => connections[0]?.destroyed === true);
  });

  test('before it is connected leaves nothing open', async () => {
    const { sending, text } = send();
    sending.abort(new Error('enough'));
    await expect(text).rejects.toThrow('enough');
    answers = [ok('b')];
    expect(await send().text).toBe('b');
    await eventually('its end', () => connections.filter(({ destroyed }) => !destroyed).length === 1);
  });

  test('after its answer has come does not break off another request that uses the connection now', async () => {
    answers = [ok('a')];
    const first = send();
    await first.text;
    const second = send();
    first.sending.abort(new Error('too late'));
    await eventually('the request', () => requests.length === 2);
    connections[0]?.write(ok('b'));
    expect(await second.text).toBe('b');
  });
});
