import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { openDatabase } from '#control/adapters/sqlite/driver.ts';
import { silentLog } from '#shared/ports/log.ts';
import { type BrokerOptions, startBroker } from './broker.ts';
import { serveBrokerMetrics } from './metrics.ts';

const get = (port: number | undefined, path: string) =>
  new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port, path, agent: false }, async (answer) => {
        let text = '';
        for await (const piece of answer) text += piece;
        resolve({ status: answer.statusCode, text });
      })
      .once('error', reject);
  });

test('the broker tells its requests by route and status, and how many agents are connected', async () => {
  const metrics = await serveBrokerMetrics('127.0.0.1:0', '1.2.3');
  try {
    metrics.follow({ sockets: () => 3, waiting: () => 1 });
    metrics.onAnswer('GET /v1/me', 200, 0.01);
    metrics.onAnswer('', 404, 0);
    const { status, text } = await get(metrics.port, '/metrics');
    expect(status).toBe(200);
    expect(text).toContain('isthmus_broker_requests_total{route="GET /v1/me",code="200"} 1\n');
    expect(text).toContain('isthmus_broker_requests_total{route="",code="404"} 1\n');
    expect(text).toContain('isthmus_broker_agents_connected 3\n');
    expect((await get(metrics.port, '/')).status).toBe(404);
  } finally {
    metrics.close();
  }
});

test.each(['0.0.0.0:9000', '192.0.2.1:9000', '[::]:9000'])(
  'metrics ask for no key, so they are not served at %s',
  async (listen) => {
    await expect(serveBrokerMetrics(listen, '1')).rejects.toMatchObject({ code: 'invalid_input' });
  },
);

test('without --metrics nothing listens', async () => {
  expect((await serveBrokerMetrics(undefined, '1')).port).toBeUndefined();
});

const listening = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPServerWrap').length;

test.each<readonly [string, string, Partial<BrokerOptions>]>([
  ['its data are of a newer program', 'newer program', {}],
  ['a trusted proxy is no address', 'trusted-proxy', { trustedProxies: ['nowhere'] }],
])('a broker that does not start because %s listens nowhere, so its process ends', async (_, words, options) => {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'isthmus-metrics-'));
  const before = listening();
  try {
    const db = openDatabase(path.join(dataDir, 'broker.db'));
    db.exec('PRAGMA user_version = 99');
    db.close();
    const local = { dataDir, listen: '127.0.0.1:0', metrics: '127.0.0.1:0', log: silentLog, version: '1' };
    await expect(startBroker({ ...local, ...options })).rejects.toThrow(words);
    await expect.poll(listening).toBe(before);
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
});
