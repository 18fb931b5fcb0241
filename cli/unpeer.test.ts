/** `isthmus unpeer --kubeconfig` when the cluster that would name the claims does not answer, or is another one. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import { facts, ScriptedAgent, send } from '#functions/local/scripted-agent.ts';
import { after } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { isthmus } from './captured-io.ts';

let dir = '';
let broker: Broker;
let silent: Server;
const sockets = new Set<Socket>();
const clusters = ['rome', 'milan', 'genoa', 'turin'];

const speed = 20;
const startedMs = Date.now();
/** Runs ahead of ours, so that what waits 15 s is not waited for. */
const clock = {
  ...systemClock,
  now: () => startedMs + (Date.now() - startedMs) * speed,
  after: (ms: number, work: () => void) => after(systemClock, ms / speed, work),
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / speed, signal),
};
const cli = (...args: readonly string[]) =>
  isthmus(args, { env: { ISTHMUS_CONFIG: path.join(dir, 'config.json') }, clock });

async function kubeconfigOf(name: string, server: string): Promise<string> {
  const file = path.join(dir, name);
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user: { token: 'secret' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  };
  await writeFile(file, JSON.stringify(content));
  return file;
}

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-unpeer-'));
  const options = { tenant: 'acme', newAdminKey: true, newOperatorKey: false, log: silentLog, version: '0' };
  broker = await startBroker({ dataDir: path.join(dir, 'data'), listen: '127.0.0.1:0', ...options });
  const login = ['login', broker.url, '--ca-hash', broker.caHash, '--key', '-'];
  const env = { ISTHMUS_CONFIG: path.join(dir, 'config.json') };
  expect((await isthmus(login, { env, stdin: broker.adminKey ?? '' })).code).toBe(0);
  const ca = await readFile(broker.caFile, 'utf8');
  for (const cluster of clusters) {
    const headers = { authorization: `Bearer ${broker.adminKey}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ cluster });
    const { body: made } = await send({ method: 'POST', url: `${broker.url}/v1/join-tokens`, ca, headers, body });
    expect((await new ScriptedAgent(made.token, ca).enroll({ facts })).status).toBe(200);
  }
  silent = createServer((socket) => void sockets.add(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
}, 60_000);
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  silent.close();
  await broker.close();
  await rm(dir, { recursive: true, force: true });
});

describe('unpeer with a kubeconfig, before it names the claims whose data is kept,', () => {
  test.each([
    {
      what: 'hears nothing',
      consumer: 'rome',
      address: () => `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
    },
    { what: 'is refused a connection', consumer: 'genoa', address: () => 'http://127.0.0.1:9' },
  ])('$what: says so and ends the peering all the same', async ({ consumer, address }) => {
    expect((await cli('peer', consumer, 'milan')).code).toBe(0);
    const kubeconfig = await kubeconfigOf(`${consumer}.json`, address());
    const ran = await cli('unpeer', consumer, 'milan', '--kubeconfig', kubeconfig);
    expect(ran.err).toMatch(`which claims of ${consumer} have data at milan could not be read (`);
    expect(ran.err).toMatch(/going on: no data is deleted with it\n$/);
    expect(ran).toMatchObject({ code: 0, out: expect.stringMatching(/ is (Unpeering|Gone): /) });
  });

  test('cannot read the kubeconfig: ends nothing', async () => {
    expect((await cli('peer', 'turin', 'milan')).code).toBe(0);
    const ran = await cli('unpeer', 'turin', 'milan', '--kubeconfig', path.join(dir, 'none.json'));
    expect(ran).toMatchObject({ code: 2, err: expect.stringContaining('cannot be read') });
    expect((await cli('describe', 'peering', 'turin', 'milan')).out).toMatch(/Phase: +Connecting/);
  });
});
