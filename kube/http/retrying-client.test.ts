import * as http from 'node:http';
import net from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { connectTo } from '#test/harness/plain-server.ts';
import { connectKubeconfig } from './kubeconfig.ts';
import { statusError } from './request.ts';
import { type Call, createRetryingClient, type RetryingClientOptions } from './retrying-client.ts';

const get: Call = { method: 'GET', path: '/api/v1/pods', repeatable: true };
const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** A server that does what a real one does only in trouble. */
async function serve(handler: http.RequestListener, options: RetryingClientOptions = {}, clock: Clock = systemClock) {
  const { connection, close } = await connectTo(http.createServer(handler));
  cleanups.push(close);
  return createRetryingClient(connection, { clock, log: silentLog, random: () => 0 }, options);
}

describe('a request', () => {
  test('that is throttled is repeated after as long as the server asked for', async () => {
    const at: number[] = [];
    const send = await serve((_request, response) => {
      at.push(performance.now());
      if (at.length === 1) response.writeHead(429, { 'retry-after': '1' }).end();
      else response.end('ok');
    });
    expect(await send(get)).toBe('ok');
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test('that is throttled longer than its deadline fails at once', async () => {
    const send = await serve((_request, response) => response.writeHead(429, { 'retry-after': '60' }).end());
    await expect(send(get)).rejects.toMatchObject({ code: 'kube_throttled', detail: { retryAfterMs: 60_000 } });
  });

  test('is repeated a bounded number of times, and only when repeating is harmless', async () => {
    let requests = 0;
    const send = await serve((request) => {
      requests++;
      request.socket.destroy();
    });
    await expect(send(get)).rejects.toMatchObject({ code: 'kube_unreachable' });
    expect(requests).toBe(4);
    requests = 0;
    await expect(send({ method: 'POST', path: '/api/v1/pods', body: {} })).rejects.toMatchObject({
      code: 'kube_unreachable',
    });
    expect(requests).toBe(1);
  });

  test('whose caller gives up before it is sent is not sent', async () => {
    let requests = 0;
    const send = await serve((_request, response) => {
      requests++;
      response.end('ok');
    });
    const stop = new AbortController();
    const reason = new Error('enough');
    const sent = send({ method: 'POST', path: '/api/v1/pods', body: {} }, stop.signal);
    stop.abort(reason);
    await expect(sent).rejects.toBe(reason);
    expect(await send(get)).toBe('ok');
    expect(requests).toBe(1);
  });

  test('that hangs since a long outage is sent again as soon as the server answers another one', async () => {
    let hanging = 0;
    let passedMs = 0;
    const clock: Clock = { ...systemClock, now: () => systemClock.now() + passedMs };
    const send = await serve(
      (request, response) => {
        if (request.url === '/hangs' && ++hanging === 1) return;
        if (request.url === '/breaks') request.socket.destroy();
        else response.end('ok');
      },
      { retries: 1 },
      clock,
    );
    const hung = send({ ...get, path: '/hangs' });
    await expect(send({ ...get, path: '/breaks' })).rejects.toMatchObject({ code: 'kube_unreachable' });
    passedMs = 6_000;
    const answeredAt = performance.now();
    await send(get);
    expect(await hung).toBe('ok');
    // Its own deadline is 10 s.
    expect(performance.now() - answeredAt).toBeLessThan(8_000);
    expect(hanging).toBe(2);
  });

  test('whose answer breaks off is unreachable, not half read', async () => {
    const send = await serve(
      (_request, response) => {
        response.writeHead(200, { 'content-length': '100' });
        response.write('{"items":[');
        setImmediate(() => response.destroy());
      },
      { retries: 0 },
    );
    await expect(send(get)).rejects.toMatchObject({ code: 'kube_unreachable' });
  });

  test('whose answer keeps coming is not cut by the limit on silence', async () => {
    const send = await serve(
      (_request, response) => {
        let pieces = 0;
        const timer = setInterval(() => {
          response.write('x');
          if (++pieces < 8) return;
          clearInterval(timer);
          response.end();
        }, 200);
      },
      { timeoutMs: 1_000, retries: 0 },
    );
    expect(await send({ ...get, deadlineMs: 10_000 })).toBe('xxxxxxxx');
    await expect(send(get)).rejects.toMatchObject({ message: expect.stringContaining('within 1 s') });
  });

  test('to a closed port is unreachable, with the reason', async () => {
    const free = net.createServer();
    await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
    const { port } = free.address() as net.AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const config = {
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'x' } }],
      clusters: [{ name: 'x', cluster: { server: `http://127.0.0.1:${port}` } }],
    };
    const send = createRetryingClient(await connectKubeconfig(JSON.stringify(config)), {
      clock: systemClock,
      log: silentLog,
    });
    await expect(send(get)).rejects.toMatchObject({
      code: 'kube_unreachable',
      message: expect.stringContaining('ECONNREFUSED'),
    });
  });
});

const status = (code: number, reason: string, message: string, details: object = {}): string =>
  JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details });

test.each([
  { http: 400, text: status(400, 'BadRequest', 'unknown field'), code: 'kube_invalid' },
  { http: 401, text: status(401, 'Unauthorized', 'Unauthorized'), code: 'kube_unauthorized' },
  { http: 403, text: status(403, 'Forbidden', 'pods is forbidden'), code: 'kube_forbidden' },
  {
    http: 403,
    text: status(403, 'Forbidden', 'admission webhook "pods.isthmus.dev" denied the request: too large'),
    code: 'kube_invalid',
  },
  { http: 404, text: '404 page not found', code: 'kube_not_found' },
  { http: 409, text: status(409, 'AlreadyExists', 'exists'), code: 'kube_already_exists' },
  { http: 409, text: status(409, 'Conflict', 'modified'), code: 'kube_conflict' },
  { http: 410, text: status(410, 'Expired', 'too old'), code: 'kube_gone' },
  { http: 422, text: status(422, 'Invalid', 'spec.x'), code: 'kube_invalid' },
  { http: 429, text: '', code: 'kube_throttled' },
  { http: 500, text: status(500, 'InternalError', 'etcd'), code: 'kube_failed' },
  { http: 500, text: status(500, 'ServerTimeout', 'again', { retryAfterSeconds: 1 }), code: 'kube_throttled' },
  { http: 503, text: '<html>bad gateway</html>', code: 'kube_unreachable' },
  { http: 418, text: '', code: 'kube_failed' },
])('$http $text becomes $code', ({ http: answered, text, code }) => {
  const error = statusError(answered, text);
  expect(error).toBeInstanceOf(AppError);
  expect(error.code).toBe(code);
  expect(error.message).not.toBe('');
});
