import http from 'node:http';
import https from 'node:https';
import { afterEach, describe, expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { Registry } from '#shared/metrics/registry.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { serveMetrics } from './server.ts';
import { metricsSettings } from './settings.ts';

const stop: AbortController[] = [];
afterEach(() => {
  for (const one of stop.splice(0)) one.abort();
});

/** Knows two tokens: `good` may get `/metrics`, `poor` may not. */
function cluster(): { readonly api: KubeApi; readonly asked: string[] } {
  const asked: string[] = [];
  const api = {
    async postPath(path: string, { spec }: { spec: Record<string, unknown> }) {
      asked.push(path.slice(path.lastIndexOf('/') + 1));
      if (spec.token === 'silent') throw new AppError('kube_unreachable', 'no answer');
      if (path.endsWith('tokenreviews')) {
        const known = spec.token === 'good' || spec.token === 'poor';
        return { status: known ? { authenticated: true, user: { username: spec.token, groups: ['g'] } } : {} };
      }
      expect(spec.nonResourceAttributes).toEqual({ path: '/metrics', verb: 'get' });
      return { status: { allowed: spec.user === 'good' } };
    },
  } as unknown as KubeApi;
  return { api, asked };
}

async function start(access: 'authenticated' | 'open', clock = new ManualClock(Date.now())) {
  const registry = new Registry();
  registry.set({ name: 'a', type: 'gauge', help: 'A.', labels: [] }, {}, 1);
  const signal = new AbortController();
  stop.push(signal);
  const { api, asked } = cluster();
  const deps = { registry, api, clock, log: silentLog };
  const { port } = await serveMetrics({ host: '127.0.0.1', port: 0, access }, deps, signal.signal);
  const ask = (token?: string, path = '/metrics', method = 'GET') =>
    new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const options = { host: '127.0.0.1', port, path, method, headers, agent: false, rejectUnauthorized: false };
      const request = (access === 'open' ? http : https).request(options, async (answer) => {
        let text = '';
        for await (const piece of answer) text += piece;
        resolve({ status: answer.statusCode, text });
      });
      request.once('error', reject).end();
    });
  return { ask, asked, clock, port };
}

describe('metrics', () => {
  test('are given over TLS to a caller whose token the cluster knows and whose rights include the path', async () => {
    const { ask } = await start('authenticated');
    expect(await ask('good')).toEqual({ status: 200, text: '# HELP a A.\n# TYPE a gauge\na 1\n' });
  });

  test.each([
    { token: undefined, status: 401 },
    { token: 'unknown', status: 401 },
    { token: 'poor', status: 403 },
    { token: 'silent', status: 503 },
  ])('are refused with $status to the token $token', async ({ token, status }) => {
    const { ask } = await start('authenticated');
    const answer = await ask(token);
    expect(answer.status).toBe(status);
    expect(answer.text).not.toContain('# TYPE');
  });

  test('are not given over plain HTTP unless that was asked for', async () => {
    const { port } = await start('authenticated');
    const plain = new Promise((resolve) =>
      http.get({ host: '127.0.0.1', port, path: '/metrics', agent: false }, resolve).once('error', resolve),
    );
    expect(await plain).toBeInstanceOf(Error);
    const { ask } = await start('open');
    expect((await ask()).status).toBe(200);
  });

  test('cost the API server two requests a minute for each caller, however often it comes', async () => {
    const { ask, asked, clock } = await start('authenticated');
    for (let i = 0; i < 5; i++) await ask('good');
    expect(asked).toEqual(['tokenreviews', 'subjectaccessreviews']);
    await ask('unknown');
    await ask('unknown');
    expect(asked).toHaveLength(3);
    clock.advance(61_000);
    await ask('good');
    expect(asked).toHaveLength(5);
  });

  test('are all that there is', async () => {
    const { ask } = await start('open');
    expect((await ask(undefined, '/')).status).toBe(404);
    expect((await ask(undefined, '/metrics', 'POST')).status).toBe(405);
  });
});

describe('the settings', () => {
  test('without a port, nothing is served', () => {
    expect(metricsSettings({ ISTHMUS_METRICS_ACCESS: 'open' }, [])).toBeUndefined();
  });

  test('default to authenticated callers', () => {
    expect(metricsSettings({ ISTHMUS_METRICS_PORT: '8443' }, [])).toEqual({ port: 8443, access: 'authenticated' });
  });

  test('that are wrong are named', () => {
    const faults: string[] = [];
    metricsSettings({ ISTHMUS_METRICS_PORT: 'x', ISTHMUS_METRICS_ACCESS: 'all' }, faults);
    expect(faults).toEqual([
      'ISTHMUS_METRICS_PORT is "x", accepted: an integer from 0 to 65535',
      'ISTHMUS_METRICS_ACCESS is "all", accepted: authenticated, open',
    ]);
  });
});
