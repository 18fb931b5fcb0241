import * as http from 'node:http';
import net from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { configMaps, namespaces, secrets } from '#shared/domain/core-kinds.ts';
import type { ConfigMap, ResourceType } from '#shared/domain/kube-object.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { startTcpProxy } from '#test/harness/tcp-proxy.ts';
import type { KubeApi } from '../model/types.ts';
import { createKubeApi } from './client.ts';
import type { ClusterConnection } from './connection.ts';
import { connectKubeconfig } from './kubeconfig.ts';
import { fetchPage } from './list-page.ts';
import { createRetryingClient } from './retrying-client.ts';

const deps = { clock: systemClock, log: silentLog };
let server: TestApiServer;
let connection: ClusterConnection;
let api: KubeApi;

beforeAll(async () => {
  server = await startApiServer({ flags: ['--etcd-compaction-interval=1s'] });
  connection = await connectKubeconfig(server.kubeconfig);
  api = createKubeApi(connection, deps);
}, 900_000);
afterAll(async () => {
  connection?.close();
  await server?.stop();
});

const configMap = (namespace: string, name: string, data: Record<string, string> = {}): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace, name },
  data,
});

/** A client with a token that no cluster issued. */
const kubeconfig = (ca?: string): string => {
  const data = ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  return JSON.stringify({
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server: server.url, ...data } }],
    users: [{ name: 'x', user: { token: 'nonsense' } }],
  });
};

const createNamespace = (name: string) =>
  api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

async function fill(namespace: string, count: number): Promise<void> {
  await createNamespace(namespace);
  const numbers = Array.from({ length: count }, (_, i) => i);
  const lanes = Array.from({ length: 16 }, async () => {
    for (let i = numbers.pop(); i !== undefined; i = numbers.pop()) {
      await api.create(configMaps, configMap(namespace, `item-${String(i).padStart(5, '0')}`, { i: String(i) }));
    }
  });
  await Promise.all(lanes);
}

describe('one object', () => {
  test('can be created, read, updated, patched both ways and deleted', async () => {
    const made = await api.create(configMaps, configMap('default', 'life', { a: '1' }));
    const updated = await api.update(configMaps, { ...made, data: { a: '2' } });
    expect(updated.metadata.uid).toBe(made.metadata.uid);
    const ref = { namespace: 'default', name: 'life' };
    await api.mergePatch(configMaps, ref, { data: { b: '3' } });
    await api.jsonPatch(configMaps, ref, [
      { op: 'test', path: '/data/a', value: '2' },
      { op: 'remove', path: '/data/a' },
    ]);
    expect((await api.get(configMaps, ref))?.data).toEqual({ b: '3' });
    expect(await api.delete(configMaps, ref)).toBe(true);
    expect(await api.get(configMaps, ref)).toBeUndefined();
    expect(await api.delete(configMaps, ref)).toBe(false);
  });

  test('is answered by its metadata alone when the caller asks for no more', async () => {
    const answer = { answer: 'metadata' } as const;
    const made = await api.create(configMaps, configMap('default', 'told', { a: '1' }), answer);
    expect(made.metadata).toMatchObject({ namespace: 'default', name: 'told', uid: expect.any(String) });
    expect(made).not.toHaveProperty('data');
    const patched = await api.mergePatch(
      configMaps,
      { namespace: 'default', name: 'told' },
      { data: { a: '2' } },
      answer,
    );
    expect(patched.metadata.resourceVersion).not.toBe(made.metadata.resourceVersion);
    expect(patched).not.toHaveProperty('data');
    expect((await api.get(configMaps, { namespace: 'default', name: 'told' }))?.data).toEqual({ a: '2' });
  });

  test('is deleted only in the incarnation that was meant', async () => {
    const made = await api.create(configMaps, configMap('default', 'twice'));
    const ref = { namespace: 'default', name: 'twice' };
    expect(await api.delete(configMaps, ref, { uid: '00000000-0000-0000-0000-000000000000' })).toBe(false);
    expect(await api.get(configMaps, ref)).toBeDefined();
    await expect(
      api.delete(configMaps, ref, { uid: made.metadata.uid ?? '', resourceVersion: '1' }),
    ).rejects.toMatchObject({ code: 'kube_conflict' });
    expect(await api.delete(configMaps, ref, { uid: made.metadata.uid ?? '' })).toBe(true);
  });

  test('refuses a jsonPatch whose test does not hold', async () => {
    await api.create(configMaps, configMap('default', 'guarded', { a: '1' }));
    const ref = { namespace: 'default', name: 'guarded' };
    const patch = [{ op: 'test', path: '/data/a', value: '2' }];
    await expect(api.jsonPatch(configMaps, ref, patch)).rejects.toMatchObject({ code: 'kube_invalid' });
  });
});

describe('server-side apply', () => {
  const ref = { namespace: 'default', name: 'shared' };
  const applied = (data: Record<string, string>) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: ref,
    data,
  });

  test('creates, then changes nothing when applied again', async () => {
    const first = await api.apply(configMaps, applied({ color: 'red' }), { fieldManager: 'one' });
    const again = await api.apply(configMaps, applied({ color: 'red' }), { fieldManager: 'one' });
    expect(again.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test('that creates only creates a new object, and is refused for any existing one, also when both set no field in common', async () => {
    const name = 'new';
    const mine = { ...applied({}), metadata: { ...ref, name, labels: { mine: 'yes' } } };
    const options = { fieldManager: 'two', createOnly: true };
    expect(await api.apply(configMaps, mine, options)).toMatchObject({ metadata: { labels: { mine: 'yes' } } });
    await api.delete(configMaps, { ...ref, name });
    const theirs = await api.create(configMaps, configMap('default', name, { x: 'theirs' }));
    await expect(api.apply(configMaps, mine, options)).rejects.toMatchObject({ code: 'kube_conflict' });
    expect(await api.get(configMaps, { ...ref, name })).toEqual(theirs);
  });

  test('takes a field over and leaves what others own', async () => {
    await api.apply(configMaps, applied({ color: 'red', size: 'xl' }), { fieldManager: 'one' });
    await api.apply(configMaps, applied({ color: 'blue' }), { fieldManager: 'two' });
    expect((await api.get(configMaps, ref))?.data).toEqual({ color: 'blue', size: 'xl' });
    await api.apply(configMaps, applied({}), { fieldManager: 'one' });
    expect((await api.get(configMaps, ref))?.data).toEqual({ color: 'blue' });
  });
});

describe('refusals', () => {
  test('a stale update conflicts', async () => {
    const made = await api.create(configMaps, configMap('default', 'stale'));
    await api.update(configMaps, { ...made, data: { a: '1' } });
    await expect(api.update(configMaps, made)).rejects.toMatchObject({ code: 'kube_conflict' });
  });

  test('a name that is taken is told from a conflict', async () => {
    await api.create(configMaps, configMap('default', 'taken'));
    await expect(api.create(configMaps, configMap('default', 'taken'))).rejects.toMatchObject({
      code: 'kube_already_exists',
    });
  });

  test('an invalid object names its field', async () => {
    await expect(api.create(configMaps, configMap('default', 'Not A Name'))).rejects.toMatchObject({
      code: 'kube_invalid',
      message: expect.stringContaining('metadata.name'),
      detail: { field: 'metadata.name' },
    });
  });

  test('an unknown kind is not mistaken for an absent object', async () => {
    const unknown: ResourceType = {
      group: 'no.example',
      version: 'v1',
      kind: 'Thing',
      plural: 'things',
      namespaced: true,
    };
    const expected = { code: 'kube_not_found', message: expect.stringContaining('Thing (no.example/v1)') };
    await expect(api.get(unknown, { namespace: 'default', name: 'x' })).rejects.toMatchObject(expected);
    await expect(api.list(unknown)).rejects.toMatchObject(expected);
  });

  test('a namespaced kind without a namespace never reaches the server', async () => {
    await expect(api.get(secrets, { name: 'x' })).rejects.toMatchObject({ code: 'kube_invalid' });
    await expect(api.delete(secrets, { name: 'x' })).rejects.toMatchObject({ code: 'kube_invalid' });
  });

  test('missing rights and bad credentials have codes of their own', async () => {
    const noRights = { ...connection, headers: () => ({ ...connection.headers(), 'impersonate-user': 'mallory' }) };
    await expect(createKubeApi(noRights, deps).list(secrets)).rejects.toMatchObject({
      code: 'kube_forbidden',
      message: expect.stringContaining('"mallory" cannot list resource "secrets"'),
    });
    const stranger = await connectKubeconfig(kubeconfig(server.ca));
    await expect(createKubeApi(stranger, deps).list(secrets)).rejects.toMatchObject({ code: 'kube_unauthorized' });
    stranger.close();
  });

  test('a server whose authority is another is not trusted', async () => {
    const other = await connectKubeconfig(kubeconfig());
    await expect(createKubeApi(other, deps, { retries: 0 }).getPath('/livez')).rejects.toMatchObject({
      code: 'kube_unreachable',
      message: expect.stringMatching(/certificate/),
    });
    other.close();
  });
});

describe('a list', () => {
  test('of 2,000 objects is read whole, in pages', async () => {
    await fill('many', 2_000);
    const send = createRetryingClient(connection, deps);
    const first = await fetchPage(send, configMaps, { namespace: 'many' }, { limit: 500, next: undefined });
    expect(first.items).toHaveLength(500);
    expect(first.next).toBeDefined();
    const all = await api.list(configMaps, { namespace: 'many' });
    expect(new Set(all.map((object) => object.metadata.name)).size).toBe(2_000);
    expect(all.every((object) => object.kind === 'ConfigMap' && object.apiVersion === 'v1')).toBe(true);
  }, 120_000);

  test('starts again when its snapshot is compacted away between two pages', async () => {
    const send = createRetryingClient(connection, deps);
    const page = (next: string | undefined) => fetchPage(send, configMaps, { namespace: 'many' }, { limit: 500, next });
    let requests = 0;
    const interrupted: ClusterConnection = {
      ...connection,
      async authorize() {
        if (++requests !== 2) return;
        // A token from now on is younger than the list's own: when it is dead, so is the other. The server compacts each second
        // what is older than the second before, if something was written.
        const { next } = await page(undefined);
        let writes = 0;
        const write = () =>
          api.mergePatch(configMaps, { namespace: 'many', name: 'item-00000' }, { data: { w: `${writes++}` } });
        await expect
          .poll(() => write().then(() => page(next).then(() => 'served', codeOf)), { timeout: 60_000, interval: 200 })
          .toBe('kube_gone');
      },
    };
    const listed = await createKubeApi(interrupted, deps).list(configMaps, { namespace: 'many' });
    expect(new Set(listed.map(({ metadata }) => metadata.name)).size).toBe(2_000);
    expect(listed).toHaveLength(2_000);
    // Four and not two more: from the beginning. A machine that takes seconds for them may see the next compaction, too.
    expect(requests).toBeGreaterThanOrEqual(2 + 4);
  }, 120_000);
});

describe('a line that fails', () => {
  test('is reported within the deadline when the server accepts but never answers', async () => {
    const proxy = await startTcpProxy(Number(new URL(server.url).port));
    proxy.newConnections('stall');
    const stalled = await connectKubeconfig(
      server.kubeconfig.replaceAll(server.url, `https://127.0.0.1:${proxy.port}`),
    );
    const startedAt = performance.now();
    await expect(createKubeApi(stalled, deps, { timeoutMs: 500 }).getPath('/livez')).rejects.toMatchObject({
      code: 'kube_unreachable',
      message: expect.stringContaining('within 0.5 s'),
    });
    expect(performance.now() - startedAt).toBeLessThan(20_000);
    stalled.close();
    await proxy.close();
  });

  test('costs a read nothing when only the pooled connection was cut', async () => {
    const proxy = await startTcpProxy(Number(new URL(server.url).port));
    const line = await connectKubeconfig(server.kubeconfig.replaceAll(server.url, `https://127.0.0.1:${proxy.port}`));
    const flaky = createKubeApi(line, deps);
    expect(await flaky.getPath('/livez')).toBe('ok');
    proxy.cut();
    expect(await flaky.getPath('/livez')).toBe('ok');
    line.close();
    await proxy.close();
  });

  test('costs one deadline, not one for each pooled connection that died silently', async () => {
    const proxy = await startTcpProxy(Number(new URL(server.url).port));
    const line = await connectKubeconfig(server.kubeconfig.replaceAll(server.url, `https://127.0.0.1:${proxy.port}`));
    const impatient = createKubeApi(line, deps, { timeoutMs: 4_000, retries: 0 });
    await Promise.all([1, 2, 3].map(() => impatient.getPath('/livez')));
    proxy.stall();
    await expect(impatient.getPath('/livez')).rejects.toMatchObject({ code: 'kube_unreachable' });
    expect(await Promise.all([1, 2, 3].map(() => impatient.getPath('/livez')))).toEqual(['ok', 'ok', 'ok']);
    line.close();
    await proxy.close();
  });

  test('is helped by a proxy when the kubeconfig names one, and says when that proxy refuses', async () => {
    const targets: (string | undefined)[] = [];
    let open = true;
    const proxy = http.createServer().on('connect', (request, client: net.Socket) => {
      targets.push(request.url);
      if (!open) return void client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      const [host, port] = (request.url ?? '').split(':');
      const onward = net.connect(Number(port), host, () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        client.pipe(onward).pipe(client);
      });
      for (const socket of [client, onward]) socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { port } = proxy.address() as net.AddressInfo;
    const config = parse(server.kubeconfig) as { clusters: { cluster: Record<string, string> }[] };
    for (const { cluster } of config.clusters) cluster['proxy-url'] = `http://127.0.0.1:${port}`;
    const line = await connectKubeconfig(JSON.stringify(config));
    expect(await createKubeApi(line, deps).getPath('/livez')).toBe('ok');
    expect(targets).toEqual([new URL(server.url).host]);
    line.close();
    open = false;
    await expect(createKubeApi(line, deps, { retries: 0 }).getPath('/livez')).rejects.toMatchObject({
      code: 'kube_unreachable',
      message: expect.stringContaining('403'),
    });
    proxy.close();
  });

  test('ends with the reason of the signal when the caller gives up', async () => {
    const stop = new AbortController();
    const reason = new Error('shutting down');
    const listing = api.list(configMaps, {}, stop.signal);
    stop.abort(reason);
    await expect(listing).rejects.toBe(reason);
  });
});
