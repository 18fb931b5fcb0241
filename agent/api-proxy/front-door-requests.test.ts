/** Requests by which a consumer tries to be another, or to get past the front door. */
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { countOf } from '#test/harness/cases.ts';
import { call, closeDoors, raw, startDoor } from './testing/front-door-fixture.ts';

afterEach(closeDoors);

test.each([
  ['Impersonate-User', 403],
  ['impersonate-group', 403],
  ['Impersonate-Extra-scopes', 403],
  ['X-Remote-User', 403],
  ['x-remote-extra-a', 403],
])('the header %s is refused: a consumer acts for no other', async (name, status) => {
  const { door, behind } = await startDoor();
  const answer = await call(door.port, '/', { headers: { [name]: 'system:masters' } });
  expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(name.toLowerCase())]);
  expect(behind.asked).toEqual([]);
});

test.each([
  ['an absolute target', 'GET http://169.254.169.254/latest HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', / 400 /],
  ['a target with two slashes', 'GET //evil.example/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', / 400 /],
  ['a target that is no path', 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', / 400 /],
  ['CONNECT', 'CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: a\r\n\r\n', /^$/],
  [
    'a request inside another',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api HTTP/1.1\r\n\r\n',
    / 400 /,
  ],
  ['two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody', / 400 /],
  ['headers without end', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, / 431 /],
  ['no HTTP', '\u0000\u0001\u0002\r\n\r\n', / 400 /],
])('%s reaches nothing', async (_, bytes, says) => {
  const { door, behind } = await startDoor();
  expect(await raw(door.port, bytes)).toMatch(says);
  expect(behind.asked).toEqual([]);
});

test.each(['GET', 'DELETE', 'OPTIONS'])(
  'the body of a %s whose length is not to be passed on stays its body',
  async (method) => {
    const { door, behind } = await startDoor();
    const body = 'GET /inside HTTP/1.1\r\nHost: a\r\n\r\n';
    const head = `${method} /x HTTP/1.1\r\nHost: a\r\nConnection: close, content-length\r\nContent-Length: ${body.length}`;
    expect(await raw(door.port, `${head}\r\n\r\n${body}`)).toMatch(/ 200 /);
    await call(door.port, '/next');
    expect(behind.asked.map(({ url, body: got }) => [url, got])).toEqual([
      ['/x', body],
      ['/next', ''],
    ]);
  },
);

test('of every mixture of headers the API server sees one credential: the token of its account', async () => {
  const { door, behind, clock } = await startDoor();
  const name = fc.constantFrom(
    ...[
      'authorization',
      'Authorization',
      'proxy-authorization',
      'cookie',
      'x-forwarded-for',
      'connection',
      'x-own',
      'te',
    ],
  );
  const value = fc.constantFrom('Bearer stolen', 'Basic eDp5', 'close, authorization', 'keep-alive', 'authorization');
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(name, value), { maxLength: 6 }), async (headers) => {
      const before = behind.asked.length;
      // By the rate limit of handshakes, 20 a second.
      clock.advance(50);
      const lines = headers.map(([key, text]) => `${key}: ${text}\r\n`).join('');
      await raw(door.port, `GET /x HTTP/1.1\r\nHost: a\r\n${lines}Connection: close\r\n\r\n`);
      for (const { headers: seen } of behind.asked.slice(before)) {
        expect(seen.authorization).toBe('Bearer token-1');
        expect(seen['proxy-authorization']).toBeUndefined();
      }
    }),
    { numRuns: countOf(2_000, 60) },
  );
});
