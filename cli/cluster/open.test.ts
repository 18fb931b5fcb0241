import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import * as http from 'node:http';
import * as https from 'node:https';
import type net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { capturedIo } from '#cli/captured-io.ts';
import { configMaps, pods, secrets } from '#shared/domain/core-kinds.ts';
import { type AppError, codeOf } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import { openCluster } from './open.ts';

let dir: string;
const closers: (() => void)[] = [];
beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-open-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function listen(server: http.Server | https.Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `${server instanceof https.Server ? 'https' : 'http'}://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
}

/** What a kubeconfig with this server and user opens. */
async function opened(server: string, io: Partial<ReturnType<typeof capturedIo>> = {}, user: object = {}) {
  const kubeconfig = path.join(dir, `config-${closers.length}`);
  const config = {
    'current-context': 'rome',
    contexts: [{ name: 'rome', context: { cluster: 'rome', user: 'me' } }],
    clusters: [{ name: 'rome', cluster: { server } }],
    users: [{ name: 'me', user }],
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  return openCluster({ kubeconfig }, { ...capturedIo({}), ...io });
}

const status = (code: number, reason: string, message: string, details: object = {}): http.RequestListener => {
  const body = JSON.stringify({ kind: 'Status', code, reason, message, details });
  return (_request, response) => void response.writeHead(code, { 'content-type': 'application/json' }).end(body);
};

describe('a command is told', () => {
  test('what an API server refuses, by which server, and why', async () => {
    const message = 'secrets is forbidden: User "me" cannot list resource "secrets"';
    const server = await listen(http.createServer(status(403, 'Forbidden', message)));
    const kube = await opened(server);
    const refused = {
      code: 'kube_forbidden',
      message: `the API server at ${server} refused to list secrets: ${message}`,
    };
    await expect(kube.list(secrets)).rejects.toMatchObject(refused);
    await expect(kube.get(secrets, { namespace: 'liqo', name: 'key' })).rejects.toMatchObject({
      message: `the API server at ${server} refused to get Secret liqo/key: ${message}`,
    });
  });

  test('that an API server is not reachable, and how it failed', async () => {
    const kube = await opened('https://127.0.0.1:1');
    await expect(kube.version()).rejects.toMatchObject({
      code: 'kube_unreachable',
      message: 'the API server https://127.0.0.1:1 is not reachable: connect ECONNREFUSED 127.0.0.1:1',
    });
  });

  test('that an API server is silent for 15 s, and for 65 s after a write, which may wait for webhooks of others', async () => {
    let asked = 0;
    const server = await listen(http.createServer(() => asked++));
    const clock = new ManualClock();
    const kube = await opened(server, { clock });
    const failed = async (answer: Promise<unknown>): Promise<AppError> =>
      answer.then(
        () => expect.fail('it was answered'),
        (error) => error as AppError,
      );
    const read = Promise.all([kube.list(pods), kube.version()].map(failed));
    const written = Promise.all(
      [
        kube.create(configMaps, configMap),
        kube.apply(configMaps, configMap, 'test'),
        kube.mergePatch(configMaps, configMap.metadata, {}),
        kube.delete(configMaps, configMap.metadata),
      ].map(failed),
    );
    let isWritten = false;
    void written.then(() => {
      isWritten = true;
    });
    await eventually('the requests', () => asked === 6);
    clock.advance(15_000);
    const [list, version] = await read;
    expect([list, version].map(codeOf)).toEqual(['kube_unreachable', 'kube_unreachable']);
    expect(list?.message).toBe(`${server} did not answer GET /api/v1/pods within 15 s`);
    expect(isWritten).toBe(false);
    clock.advance(50_000);
    const errors = await written;
    expect(errors.map(codeOf)).toEqual(Array.from({ length: 4 }, () => 'kube_unreachable'));
    expect(errors[0]?.message).toBe(`${server} did not answer POST /api/v1/namespaces/shop/configmaps within 65 s`);
    expect(asked).toBe(6);
  });

  test('that what gives the credentials fails', async () => {
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: '/nonexistent/plugin',
      interactiveMode: 'Never',
    };
    await expect(opened('https://127.0.0.1:1', {}, { exec })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/^the credentials of context rome do not work: .*ENOENT/),
      detail: { remedy: 'try them with `kubectl get nodes`' },
    });
  });

  test('that something else than an API server answers', async () => {
    const server = await listen(http.createServer((_request, response) => response.end('<html>')));
    await expect((await opened(server)).version()).rejects.toMatchObject({ code: 'kube_failed' });
  });
});

const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'shop', name: 'prices' } };

describe('a kind that is not served', () => {
  const absent = status(404, 'NotFound', 'the server could not find the requested resource');

  test('has no objects', async () => {
    const kube = await opened(await listen(http.createServer(absent)));
    expect(await kube.list(configMaps)).toEqual([]);
    expect(await kube.get(configMaps, configMap.metadata)).toBeUndefined();
    expect(await kube.delete(configMaps, configMap.metadata)).toBe(false);
  });

  test('takes no object', async () => {
    const kube = await opened(await listen(http.createServer(absent)));
    await expect(kube.create(configMaps, configMap)).rejects.toMatchObject({ code: 'kube_not_found' });
    await expect(kube.mergePatch(configMaps, configMap.metadata, {})).rejects.toMatchObject({ code: 'kube_not_found' });
  });
});

test('requests share a connection, which ends with the command', async () => {
  const server = http.createServer((_request, response) => response.end('{"gitVersion":"v1.34.4"}'));
  let connections = 0;
  let open = 0;
  server.on('connection', (socket) => {
    connections++;
    open++;
    socket.on('close', () => open--);
  });
  const command = new AbortController();
  const kube = await opened(await listen(server), { signal: command.signal });
  for (let times = 0; times < 3; times++) expect(await kube.version()).toBe('v1.34.4');
  expect([connections, open]).toEqual([1, 1]);
  command.abort(new Error('the command has ended'));
  await eventually('the end of the connection', () => open === 0);
});

test('a read goes on over a new connection when the server closed the kept one', async () => {
  let answers = 0;
  const server = await listen(
    http.createServer((request, response) => {
      // Of each connection the first request is answered.
      if ((request.socket as net.Socket & { served?: true }).served) return void request.socket.destroy();
      Object.assign(request.socket, { served: true });
      answers++;
      response.end('{"items":[]}');
    }),
  );
  const kube = await opened(server);
  expect(await kube.list(pods)).toEqual([]);
  expect(await kube.list(pods)).toEqual([]);
  expect(answers).toBe(2);
});
