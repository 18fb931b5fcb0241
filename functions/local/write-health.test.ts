import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import type { Store } from '#control/ports/store.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { send } from '#test/harness/raw-bytes.ts';
import { withReadiness } from './readiness.ts';
import { watchWrites } from './write-health.ts';

function setUp() {
  const clock = new ManualClock();
  const inner = createMemoryStore({ clock });
  let fault: ErrorCode | undefined;
  let takesMs = 0;
  const said: string[] = [];
  const log: Log = {
    with: () => log,
    debug() {},
    info: (message) => void said.push(message),
    warn() {},
    error: (message, _error, fields) => void said.push(`${message}: ${fields?.code}`),
  };
  const faulty: Store = {
    ...inner,
    async transact(...args) {
      clock.advance(takesMs);
      if (fault) throw new AppError(fault, 'it is so');
      await inner.transact(...args);
    },
  };
  const watched = watchWrites(faulty, { clock, log });
  return { clock, said, ...watched, fail: (code?: ErrorCode) => (fault = code), slow: (ms: number) => (takesMs = ms) };
}

test.each(['storage_full', 'storage_unwritable', 'store_busy'] as const)(
  '%s is said once, refused and over when it is',
  async (code) => {
    const { clock, said, ready, store, fail } = setUp();
    const put = (sk: string) => store.transact([{ op: 'put', pk: 'p', sk, value: 1 }]);
    await ready();
    fail(code);
    for (const sk of ['a', 'b', 'c']) await expect(put(sk)).rejects.toMatchObject({ code });
    await expect(ready()).rejects.toMatchObject({ code });
    expect(said).toEqual([`the database takes no changes: ${code}`]);
    fail();
    clock.advance(60_000);
    await ready();
    expect(said.at(-1)).toBe('the database takes changes again');
  },
);

test('a change that takes long is said to be that, and nothing else', async () => {
  const { clock, ready, slow } = setUp();
  slow(3_000);
  await expect(ready()).rejects.toMatchObject({ code: 'store_busy', message: expect.stringContaining('3000 ms') });
  slow(0);
  clock.advance(60_000);
  await ready();
});

test('GET /ready answers with the code of what is wrong, and everything else goes its way', async () => {
  const { ready, fail, clock } = setUp();
  const server = createServer(withReadiness((_, response) => void response.writeHead(418).end(), ready));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
    const text = await answer.text();
    return [answer.status, text === '' ? undefined : (JSON.parse(text).code ?? JSON.parse(text).status)];
  };
  expect(await ask('/ready')).toEqual([200, 'ready']);
  clock.advance(60_000);
  fail('storage_full');
  expect(await ask('/ready')).toEqual([507, 'storage_full']);
  fail('storage_unwritable');
  expect(await ask('/ready')).toEqual([503, 'storage_unwritable']);
  expect(await ask('/other')).toEqual([418, undefined]);
  const unsent = Buffer.from('GET /ready HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n');
  const { port } = server.address() as AddressInfo;
  const { text } = await send({ port }, { pieces: [unsent], ending: 'stay', withoutTls: true });
  expect(text.toLowerCase()).toContain('connection: close');
  await new Promise((resolve) => server.close(resolve));
});

test('on a full disk requests are answered with 507 and when to come back, and reading goes on', async () => {
  let full = false;
  const fixture = await createApiFixture({
    wrap: (store) => ({
      ...store,
      async transact(...args) {
        if (full) throw new AppError('storage_full', 'the disk is full');
        await store.transact(...args);
      },
    }),
  });
  const key = await fixture.tenant('acme');
  const make = () => fixture.call({ method: 'POST', path: '/v1/keys', key, body: { name: 'x', role: 'viewer' } });
  full = true;
  const refused = await make();
  expect([refused.status, refused.body.code, refused.body.retryable]).toEqual([507, 'storage_full', true]);
  expect(refused.headers).toHaveProperty('retry-after');
  expect((await fixture.call({ method: 'GET', path: '/v1/keys', key })).status).toBe(200);
  full = false;
  expect((await make()).status).toBe(201);
});
