import { once } from 'node:events';
import * as http from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { connectTo } from '#test/harness/plain-server.ts';
import { outageTrackerOf } from './outage-tracker.ts';
import { exchange, openRequest } from './request.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function serve(server: http.Server) {
  const { connection, close } = await connectTo(server);
  closers.push(close);
  return connection;
}

test('a request that wants a socket of its own is not sent over one that has served before and may be dead by now', async () => {
  const from: (number | undefined)[] = [];
  const connection = await serve(
    http.createServer((request, response) => {
      from.push(request.socket.remotePort);
      response.end('ok');
    }),
  );
  for (const pooled of [true, true, false]) {
    const request = openRequest(connection, { method: 'GET', path: '/', pooled }).end();
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
    await once(answer.resume(), 'close');
    await new Promise(setImmediate);
  }
  expect(from[1]).toBe(from[0]);
  expect(from[2]).not.toBe(from[0]);
});

test('a request that was answered resolves, even if another waiter of the outage tracker throws in its callback', async () => {
  const clock = new ManualClock();
  const connection = await serve(http.createServer((_, response) => response.end('ok')));
  const tracker = outageTrackerOf(connection);
  tracker.failed(clock.now());
  tracker.onReturn(() => {
    throw new Error('cannot take it');
  });
  clock.advance(2_000);
  const call = { method: 'GET', path: '/', deadlineMs: 10_000, idleMs: 10_000 };
  await expect(exchange(connection, call, clock)).resolves.toMatchObject({ status: 200, text: 'ok' });
});

test('a process that did not run until after the deadline takes the answer that came in time, and waits for no other', async () => {
  const clock = new ManualClock();
  /** Nothing runs but this; the first of what does then is a timer, before anything is read. */
  const freeze = (): void => {
    setTimeout(() => clock.advance(10_000), 0);
    const until = performance.now() + 20;
    while (performance.now() < until);
  };
  let answers = true;
  const connection = await serve(
    http.createServer((_, response) => {
      if (answers) response.end('ok', freeze);
      else freeze();
    }),
  );
  const call = { method: 'GET', path: '/', deadlineMs: 10_000, idleMs: 20_000 };
  await expect(exchange(connection, call, clock)).resolves.toMatchObject({ status: 200, text: 'ok' });
  answers = false;
  await expect(exchange(connection, call, clock)).rejects.toMatchObject({
    code: 'kube_unreachable',
    message: expect.stringMatching(/did not answer GET \/ within 10 s/),
  });
});
