import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { configMaps, namespaces } from '#shared/domain/core-kinds.ts';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { startTcpProxy, type TcpProxy } from '#test/harness/tcp-proxy.ts';
import { createKubeApi } from '../http/client.ts';
import { connectKubeconfig } from '../http/kubeconfig.ts';
import { createRetryingClient } from '../http/retrying-client.ts';
import type { Cache, Caches, Change, KubeApi } from '../model/types.ts';
import { createCaches } from './informer-factory.ts';
import { createListWatch } from './list-watch.ts';

const deps = { clock: systemClock, log: silentLog };
const patience = { timeout: 60_000, interval: 20 };
const namespace = 'watched';

let server: TestApiServer;
let api: KubeApi;
beforeAll(async () => {
  server = await startApiServer();
  api = createKubeApi(await connectKubeconfig(server.kubeconfig), deps);
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
}, 900_000);
afterAll(async () => await server?.stop());

/** The caches under test reach the server over this line; the tests themselves do not. */
let proxy: TcpProxy;
let stop: AbortController;
let caches: Caches;
beforeEach(async () => {
  proxy = await startTcpProxy(Number(new URL(server.url).port));
  stop = new AbortController();
  const connection = await connectKubeconfig(
    server.kubeconfig.replaceAll(server.url, `https://127.0.0.1:${proxy.port}`),
  );
  const timing = { idleMs: 1_500, connectMs: 1_500, watchSeconds: 300, backoffBaseMs: 20, backoffMaxMs: 500 };
  caches = createCaches(connection, deps, stop.signal, { timing });
});
afterEach(async () => {
  stop.abort();
  await proxy.close();
  await Promise.all((await api.list(configMaps, { namespace })).map((object) => remove(object.metadata.name)));
});

const configMap = (
  name: string,
  data: Record<string, string> = {},
  labels: Record<string, string> = {},
): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace, name, labels },
  data,
});
const make = (name: string, data = {}, labels = {}) => api.create(configMaps, configMap(name, data, labels));
const change = (name: string, data: Record<string, string>) =>
  api.mergePatch(configMaps, { namespace, name }, { data });
const remove = (name: string) => api.delete(configMaps, { namespace, name });

const versions = (objects: readonly ConfigMap[]): string[] =>
  objects.map((object) => `${object.metadata.name} ${object.metadata.uid} ${object.metadata.resourceVersion}`).sort();

async function expectEqualToServer(cache: Cache<ConfigMap>): Promise<void> {
  const truth = versions(await api.list(configMaps, { namespace }));
  await expect.poll(() => versions(cache.list()), patience).toEqual(truth);
}

/** What subscribers were told, as text: `+a`, `~a`, `-a`. */
function record(cache: Cache<ConfigMap>): string[] {
  const seen: string[] = [];
  cache.subscribe(({ before, after }: Change<ConfigMap>) => {
    const sign = before === undefined ? '+' : after === undefined ? '-' : '~';
    seen.push(`${sign}${(after ?? before)?.metadata.name}`);
  });
  return seen;
}

async function open(): Promise<Cache<ConfigMap>> {
  const cache = caches.cache(configMaps, { namespace });
  await cache.synced();
  return cache;
}

describe('a cache', () => {
  test('follows additions, changes and removals, without managed fields', async () => {
    await make('early');
    const cache = await open();
    const seen = record(cache);
    await make('late');
    await change('late', { a: '1' });
    await remove('early');
    await expect.poll(() => seen, patience).toEqual(['+early', '+late', '~late', '-early']);
    expect(cache.get({ namespace, name: 'late' })).toMatchObject({ kind: 'ConfigMap', data: { a: '1' } });
    expect(cache.list().every((object) => !('managedFields' in object.metadata))).toBe(true);
    await expectEqualToServer(cache);
  });

  test('is shared by all callers with the same selection, and gains their indexes', async () => {
    const cache = await open();
    const byColor = (object: ConfigMap): string[] => [object.data?.color ?? 'none'];
    const indexed = caches.cache(configMaps, { namespace, indexes: { byColor } });
    expect(indexed).toBe(cache);
    await make('rose', { color: 'red' });
    await make('sky', { color: 'blue' });
    await expect.poll(() => indexed.byIndex('byColor', 'red').map((o) => o.metadata.name), patience).toEqual(['rose']);
    await change('rose', { color: 'blue' });
    await expect
      .poll(() => indexed.byIndex('byColor', 'blue').map((o) => o.metadata.name), patience)
      .toEqual(expect.arrayContaining(['rose', 'sky']));
    expect(indexed.byIndex('byColor', 'red')).toEqual([]);
  });

  test('sees an object that no longer matches its selector as removed', async () => {
    await make('chosen', {}, { pick: 'me' });
    const cache = caches.cache(configMaps, { namespace, labelSelector: 'pick=me' });
    await cache.synced();
    const seen = record(cache);
    await api.mergePatch(configMaps, { namespace, name: 'chosen' }, { metadata: { labels: { pick: 'not' } } });
    await expect.poll(() => seen, patience).toEqual(['+chosen', '-chosen']);
  });

  test('of its own ends with its signal', async () => {
    const own = new AbortController();
    const cache = caches.scoped(configMaps, { namespace }, own.signal);
    await cache.synced();
    own.abort(new Error('peer gone'));
    const late = caches.scoped(configMaps, { namespace }, own.signal);
    await expect(late.synced()).rejects.toThrow('peer gone');
  });

  test('fills itself over a slow line', async () => {
    for (let i = 0; i < 30; i++) await make(`slow-${i}`, { filler: 'x'.repeat(500) });
    proxy.trickle(700);
    const cache = await open();
    await change('slow-7', { a: 'ü'.repeat(2_000) });
    await expectEqualToServer(cache);
  });
});

describe('a line that fails', () => {
  test('half-open, is noticed by its silence, and nothing that happened meanwhile is missed', async () => {
    await make('kept');
    await make('doomed');
    await make('reborn');
    const cache = await open();
    const seen = record(cache);
    proxy.stall();
    await change('kept', { a: '1' });
    await remove('doomed');
    await remove('reborn');
    await make('reborn');
    await make('born');
    await expectEqualToServer(cache);
    expect(seen.slice(3)).toEqual(['~kept', '-doomed', '-reborn', '+reborn', '+born']);
  });

  test('cut again and again under a storm of changes, leaves the cache equal to the server', async () => {
    const cache = await open();
    let writing = true;
    const writers = [0, 1, 2, 3].map(async (lane) => {
      for (let i = 0; i < 60; i++) {
        const name = `storm-${lane}-${i % 7}`;
        await remove(name);
        await make(name, { i: `${i}` });
        await change(name, { i: `${i}!` });
      }
    });
    const cutter = (async () => {
      while (writing) {
        await systemClock.sleep(50);
        proxy.cut();
      }
    })();
    await Promise.all(writers);
    writing = false;
    await cutter;
    await expectEqualToServer(cache);
    expect(proxy.opened()).toBeGreaterThan(3);
  });

  test('to a server that was killed: the cache goes on where it was after the restart', async () => {
    await make('a');
    await make('b');
    const cache = await open();
    const seen = record(cache);
    await server.kill();
    await server.start();
    await change('a', { after: 'restart' });
    await remove('b');
    await make('c');
    await expectEqualToServer(cache);
    // In the order of a list, where the server has forgotten the version at which the cache was.
    expect(seen.slice(2).sort()).toEqual(['+c', '-b', '~a']);
  });

  test('to a server that was away: one request that is answered restarts every cache, in spite of their back-offs', async () => {
    await make('a');
    const connection = await connectKubeconfig(
      server.kubeconfig.replaceAll(server.url, `https://127.0.0.1:${proxy.port}`),
    );
    // Left to themselves they would ask again after half a minute.
    const timing = { idleMs: 60_000, connectMs: 5_000, backoffBaseMs: 60_000, backoffMaxMs: 60_000 };
    const patient = createCaches(connection, deps, stop.signal, { timing });
    const asking = createKubeApi(connection, deps, { retries: 0 });
    const [plain, labelled] = [{}, { labelSelector: 'no!=body' }].map((selection) =>
      patient.cache(configMaps, { namespace, ...selection }),
    );
    await patient.synced();
    proxy.newConnections('refuse');
    proxy.cut();
    await change('a', { meanwhile: 'changed' });
    const cutAt = performance.now();
    await expect
      .poll(async () => {
        await expect(asking.list(configMaps, { namespace })).rejects.toMatchObject({ code: 'kube_unreachable' });
        return performance.now() - cutAt;
      }, patience)
      .toBeGreaterThan(1_200);
    proxy.newConnections('pass');
    await asking.list(configMaps, { namespace });
    const colors = () => [plain, labelled].map((cache) => cache?.get({ namespace, name: 'a' })?.data?.meanwhile);
    await expect.poll(colors, { timeout: 25_000, interval: 20 }).toEqual(['changed', 'changed']);
    connection.close();
  });

  test('so long that the server has forgotten the version: listed again, vanished objects reported', async () => {
    await make('kept');
    await make('vanished');
    await make('reborn');
    const cache = await open();
    const seen = record(cache);
    const listWatch = createListWatch(
      await connectKubeconfig(server.kubeconfig),
      createRetryingClient(await connectKubeconfig(server.kubeconfig), deps),
      systemClock,
      configMaps,
      { namespace },
      500,
    );
    const { resourceVersion } = await listWatch.page(undefined, stop.signal);
    proxy.newConnections('refuse');
    proxy.cut();
    await remove('vanished');
    await remove('reborn');
    await make('reborn');
    await change('kept', { a: '1' });
    // A server that starts knows no history.
    await server.kill();
    await server.start();
    const limits = { timeoutSeconds: 5, connectMs: 5_000, idleMs: 60_000 };
    await expect(
      listWatch.watch(resourceVersion, limits, { event: () => undefined }, stop.signal),
    ).rejects.toMatchObject({
      code: 'kube_gone',
    });
    proxy.newConnections('pass');
    await expectEqualToServer(cache);
    expect(seen.slice(3).sort()).toEqual(['+reborn', '-reborn', '-vanished', '~kept']);
    expect(seen.indexOf('-reborn')).toBeLessThan(seen.lastIndexOf('+reborn'));
  });
});

test('bookmarks move the version on although nothing that is watched changes', async () => {
  const connection = await connectKubeconfig(server.kubeconfig);
  const listWatch = createListWatch(
    connection,
    createRetryingClient(connection, deps),
    systemClock,
    configMaps,
    { namespace },
    500,
  );
  const { resourceVersion } = await listWatch.page(undefined, stop.signal);
  const bookmarks: string[] = [];
  let written: Promise<ConfigMap> | undefined;
  // The server sends the last bookmark of a watch shortly before it ends it.
  const limits = { timeoutSeconds: 6, connectMs: 5_000, idleMs: 60_000 };
  await listWatch.watch(
    resourceVersion,
    limits,
    {
      accepted: () => {
        written = api.create(configMaps, {
          ...configMap('elsewhere'),
          metadata: { namespace: 'default', name: 'elsewhere' },
        });
      },
      event: (event) => {
        if (event.type === 'BOOKMARK') bookmarks.push(event.object.metadata.resourceVersion ?? '');
      },
    },
    stop.signal,
  );
  expect(Math.max(...bookmarks.map(Number))).toBeGreaterThanOrEqual(Number((await written)?.metadata.resourceVersion));
  connection.close();
});
