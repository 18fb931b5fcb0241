import { describe, expect, test } from 'vitest';
import { hostedLimits } from '#control/limits/limits.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';

const limits = { ...hostedLimits, requestsPerMinute: 20 };
const list = { method: 'GET', path: '/v1/clusters' } as const;

describe('the limit of requests', () => {
  test('is told with every answer, and with 429 how long to wait', async () => {
    const clusters = await createApiFixture({ limits });
    const key = await clusters.tenant('acme');
    for (let left = 19; left >= 0; left -= 1) {
      const { status, headers } = await clusters.call({ ...list, key });
      expect([status, headers['ratelimit-limit'], headers['ratelimit-remaining']]).toEqual([200, '20', String(left)]);
    }
    const { status, headers, body } = await clusters.call({ ...list, key });
    expect([status, body.code, headers['ratelimit-remaining']]).toEqual([429, 'rate_limited', '0']);
    const wait = Number(headers['retry-after']);
    expect(wait).toBeGreaterThan(0);
    clusters.clock.advance(wait * 1_000);
    expect((await clusters.call({ ...list, key })).status).toBe(200);
  });

  test('counts refusals and errors too', async () => {
    const clusters = await createApiFixture({ limits });
    const admin = await clusters.tenant('acme');
    const viewer = await clusters.keyOf(admin, 'viewer');
    const statuses: number[] = [];
    for (let i = 0; i < 20; i += 1) {
      const call =
        i % 2 ? { method: 'POST', path: '/v1/keys', body: {} } : { method: 'GET', path: '/v1/peerings/pe_x' };
      const { status, headers } = await clusters.call({ ...call, key: viewer });
      expect(headers['ratelimit-limit']).toBe('20');
      statuses.push(status);
    }
    expect(new Set(statuses)).toEqual(new Set([404, 403, 429]));
  });

  test('of one tenant leaves the others as they were', async () => {
    const clusters = await createApiFixture({ limits });
    const noisy = await clusters.tenant('noisy');
    const quiet = await clusters.tenant('quiet');
    const statuses = { noisy: new Map<number, number>(), quiet: new Map<number, number>() };
    const ask = async (who: 'noisy' | 'quiet', key: string) => {
      const { status } = await clusters.call({ ...list, key });
      statuses[who].set(status, (statuses[who].get(status) ?? 0) + 1);
    };
    for (let second = 0; second < 60; second += 1) {
      await Promise.all(Array.from({ length: 50 }, () => ask('noisy', noisy)));
      if (second % 3 === 0) await ask('quiet', quiet);
      clusters.clock.advance(1_000);
    }
    expect(statuses.quiet).toEqual(new Map([[200, 20]]));
    expect(statuses.noisy.get(200)).toBeLessThanOrEqual(40);
    expect(statuses.noisy.get(429)).toBeGreaterThan(2_900);
  });

  test('is what the operator sets for the tenant', async () => {
    const clusters = await createApiFixture({ limits });
    const key = await clusters.tenant('acme');
    const change = { method: 'PATCH', path: '/v1/tenants/acme', key: clusters.operatorKey };
    await clusters.call({ ...change, body: { limits: { requestsPerMinute: 2 } } });
    expect((await clusters.call({ ...list, key })).headers['ratelimit-limit']).toBe('2');
    await clusters.call({ ...change, body: { limits: { requestsPerMinute: null } } });
    expect((await clusters.call({ ...list, key })).headers['ratelimit-limit']).toBe('20');
  });
});

test('a suspended tenant is refused with the reason, a deleted one is not known', async () => {
  const clusters = await createApiFixture();
  const key = await clusters.tenant('acme');
  const operator = { path: '/v1/tenants/acme', key: clusters.operatorKey };
  await clusters.call({ ...operator, method: 'PATCH', body: { state: 'suspended', reason: 'unpaid' } });
  const refused = await clusters.call({ ...list, key });
  expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
    403,
    'tenant_suspended',
    'tenant acme is suspended: unpaid',
  ]);
  await clusters.call({ ...operator, method: 'PATCH', body: { state: 'active' } });
  const { body } = await clusters.call({ method: 'POST', path: '/v1/tenant/deletion', key });
  const confirmed = await clusters.call({
    method: 'POST',
    path: '/v1/tenant/deletion/confirm',
    key,
    body: { name: 'acme', confirmation: body.confirmation },
  });
  expect([confirmed.status, confirmed.body.state]).toEqual([200, 'deleted']);
  expect((await clusters.call({ ...list, key })).status).toBe(401);
  expect((await clusters.call({ ...operator, method: 'GET' })).status).toBe(404);
});

test('the export is JSON lines, page by page', async () => {
  const clusters = await createApiFixture();
  const key = await clusters.tenant('acme');
  for (let i = 0; i < 120; i += 1)
    await clusters.call({ method: 'POST', path: '/v1/keys', key, body: { name: `k${i}`, role: 'viewer' } });
  const lines: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await clusters.call({
      method: 'GET',
      path: `/v1/tenant/export${cursor === undefined ? '' : `?cursor=${cursor}`}`,
      key,
    });
    expect(page.headers['content-type']).toBe('application/x-ndjson');
    lines.push(...page.text.split('\n').filter((line) => line !== ''));
    cursor = page.headers['x-next-cursor'];
  } while (cursor !== undefined);
  const kinds = lines.map((line) => (JSON.parse(line) as { kind: string }).kind);
  expect(kinds.filter((kind) => kind === 'api-key')).toHaveLength(121);
  expect(kinds.at(-1)).toBe('tenant');
});

test('an operator may repeat the making of a tenant under its Idempotency-Key, and gets the same first key', async () => {
  const clusters = await createApiFixture();
  const call = {
    method: 'POST',
    path: '/v1/tenants',
    key: clusters.operatorKey,
    body: { name: 'acme' },
    headers: { 'idempotency-key': 'k1' },
  };
  const first = await clusters.call(call);
  const again = await clusters.call(call);
  expect([again.status, again.body, again.headers['idempotency-replayed']]).toEqual([201, first.body, 'true']);
  const other = await clusters.call({ ...call, body: { name: 'bolt' } });
  expect(other.body.code).toBe('idempotency_mismatch');
});
