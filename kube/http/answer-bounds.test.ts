import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createCaches } from '#kube/cache/informer-factory.ts';
import { configMaps } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import { AnswerBounds, type BoundSizes } from './answer-bounds.ts';
import { createKubeApi } from './client.ts';
import { connectKubeconfig } from './kubeconfig.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
const deps = { clock: systemClock, log: silentLog };

type Answer = (url: URL, response: http.ServerResponse) => void;

/** A provider that answers what it likes, as the agent connects to it. */
async function connect(answer: Answer, sizes: Partial<BoundSizes>) {
  const asked: string[] = [];
  const server = http.createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://x');
    asked.push(`${url.pathname}?${url.searchParams.get('limit') ?? ''}`);
    answer(url, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const kubeconfig = {
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } }],
    contexts: [{ name: 'c', context: { cluster: 'c' } }],
    'current-context': 'c',
  };
  const bounds = new AnswerBounds('https://milan', sizes);
  const connection = await connectKubeconfig(JSON.stringify(kubeconfig), { bounds });
  closers.push(() => connection.close());
  return { asked, bounds, connection, api: createKubeApi(connection, deps, { retries: 0 }) };
}

const mapOf = (i: number, bytes: number) => ({
  metadata: { name: `m${i}`, namespace: 'n', uid: `u${i}`, resourceVersion: '1' },
  data: { text: 'x'.repeat(bytes) },
});

/** Serves `count` objects in the pages that it is asked for; a watch says nothing. */
const listOf =
  (count: number, bytes: number): Answer =>
  (url, response) => {
    if (url.searchParams.has('watch')) return void response.writeHead(200).flushHeaders();
    const from = Number(url.searchParams.get('continue') ?? 0);
    const to = Math.min(count, from + Number(url.searchParams.get('limit')));
    const items = Array.from({ length: to - from }, (_, i) => mapOf(from + i, bytes));
    const metadata = { resourceVersion: '1', ...(to < count && { continue: String(to) }) };
    response.end(JSON.stringify({ items, metadata }));
  };

const ref = { namespace: 'n', name: 'm0' };
const tooLarge = { code: 'kube_failed', detail: { tooLarge: true }, message: expect.stringContaining('https://milan') };

test('an answer that has no end is broken off, whether its length is said or not', async () => {
  const endless: Answer = (url, response) => {
    if (url.pathname.includes('sized')) response.writeHead(200, { 'content-length': 1e9 });
    const piece = Buffer.alloc(64_000, 'x');
    const more = (): void => {
      while (!response.destroyed && response.write(piece));
      response.once('drain', more);
    };
    more();
  };
  const { api } = await connect(endless, { answerBytes: 1_000_000 });
  await expect(api.getPath('/sized')).rejects.toMatchObject(tooLarge);
  await expect(api.getPath('/chunked')).rejects.toMatchObject(tooLarge);
});

test('an object larger than any that etcd takes is not read', async () => {
  const { api } = await connect((_, response) => response.end(JSON.stringify(mapOf(0, 20_000))), {
    objectBytes: 10_000,
  });
  await expect(api.get(configMaps, ref)).rejects.toMatchObject(tooLarge);
});

test('a list whose pages are too large is read in smaller ones', async () => {
  const { api, asked } = await connect(listOf(40, 10_000), { answerBytes: 50_000 });
  expect(await api.list(configMaps, { namespace: 'n' })).toHaveLength(40);
  expect(asked.map((one) => Number(one.split('?')[1]))).toContain(1);
});

test('a list that is too large as a whole is refused, cached or not', async () => {
  const { api, connection } = await connect(listOf(40, 10_000), { keptBytes: 200_000 });
  await expect(api.list(configMaps, { namespace: 'n' })).rejects.toMatchObject(tooLarge);
  const errors: unknown[] = [];
  const log = { ...silentLog, error: (_: string, error: unknown) => void errors.push(error) };
  const stop = new AbortController();
  const timing = { backoffBaseMs: 1, backoffMaxMs: 5 };
  const cache = createCaches(connection, { ...deps, log }, stop.signal, { timing }).cache(configMaps);
  await eventually('the reason', async () => errors.length > 0);
  expect([cache.isSynced(), cache.list(), errors[0]]).toEqual([false, [], expect.objectContaining(tooLarge)]);
  stop.abort();
});

test('what the caches of a peer keep is counted together, and is free again when one ends', async () => {
  const { connection, bounds } = await connect(listOf(10, 10_000), { keptBytes: 150_000 });
  const stop = new AbortController();
  const caches = createCaches(connection, deps, stop.signal, { timing: { backoffBaseMs: 1, backoffMaxMs: 5 } });
  await caches.cache(configMaps, { namespace: 'a' }).synced();
  const other = caches.cache(configMaps, { namespace: 'b' });
  expect(() => bounds.checkKept(60_000)).toThrow('sends too much');
  stop.abort();
  await eventually('nothing kept', async () => {
    bounds.checkKept(149_000);
    return true;
  });
  expect(other.isSynced()).toBe(false);
});

test('a watch of objects that grow ends before they are too many, and a line without an end is cut', async () => {
  let sent = 0;
  const growing: Answer = (url, response) => {
    if (!url.searchParams.has('watch')) return void listOf(0, 0)(url, response);
    response.writeHead(200);
    if (url.pathname.includes('/line/')) return void response.write('x'.repeat(60_000));
    for (let i = 0; i < 40; i++) {
      response.write(`${JSON.stringify({ type: 'ADDED', object: mapOf(i, 10_000) })}\n`);
      sent++;
    }
  };
  const { connection, bounds } = await connect(growing, { keptBytes: 200_000, objectBytes: 50_000 });
  const errors: unknown[] = [];
  const log = { ...silentLog, error: (_: string, error: unknown) => void errors.push(error) };
  const stop = new AbortController();
  const caches = createCaches(connection, { ...deps, log }, stop.signal, {
    timing: { backoffBaseMs: 1, backoffMaxMs: 5 },
  });
  const lines = caches.cache(configMaps, { namespace: 'line' });
  const many = caches.cache(configMaps, { namespace: 'many' });
  await eventually('both told', async () => errors.length >= 2);
  expect(sent).toBeGreaterThanOrEqual(40);
  expect(errors).toEqual(errors.map(() => expect.objectContaining(tooLarge)));
  expect([lines.list().length, many.list().length <= 20]).toEqual([0, true]);
  stop.abort();
  await eventually('all is free', async () => {
    bounds.checkKept(199_000);
    bounds.take(bounds.sizes.inFlightBytes);
    bounds.give(bounds.sizes.inFlightBytes);
    return true;
  });
});

test('one peer that takes all that it may leaves the others what is theirs', async () => {
  const greedy = await connect(listOf(40, 10_000), { keptBytes: 200_000 });
  const honest = await connect(listOf(10, 10_000), { keptBytes: 200_000 });
  await expect(greedy.api.list(configMaps)).rejects.toMatchObject(tooLarge);
  expect(await honest.api.list(configMaps)).toHaveLength(10);
});

test('answers that never end share one bound, and give back what they took when they are left', async () => {
  const endless: Answer = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '90000' });
    response.write(' '.repeat(60_000));
  };
  const { api, bounds } = await connect(endless, { inFlightBytes: 100_000 });
  const stop = new AbortController();
  const outcomes = ['a', 'b'].map((name) =>
    api.get(configMaps, { namespace: 'n', name }, stop.signal).then(
      () => 'an answer',
      (error: unknown) => error,
    ),
  );
  expect(await Promise.race(outcomes)).toMatchObject(tooLarge);
  stop.abort();
  await Promise.all(outcomes);
  await eventually('all is free', async () => {
    bounds.take(bounds.sizes.inFlightBytes);
    return true;
  });
});
