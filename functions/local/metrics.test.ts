import http from 'node:http';
import { expect, test } from 'vitest';
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
