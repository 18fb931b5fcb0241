/** Portals that listen at a hosted broker: the functions behind the WebSocket API and the dispatcher of the table's stream. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { connectionLifeMs } from '#control/adapters/apigateway/connection-items.ts';
import { maxListeners } from '#control/events/listeners.ts';
import { hostedLimits } from '#control/limits/limits.ts';
import type { Store } from '#control/ports/store.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';
import { openPortals, recordEvents } from '#functions/testing/portals.ts';

const ping = { type: 'ping' };
const news = { type: 'events' };

async function hosted({ requestsPerMinute = 100_000, wrap = (store: Store) => store } = {}) {
  const events = recordEvents();
  const fixture = await createApiFixture({
    limits: { ...hostedLimits, requestsPerMinute },
    wrap: (store) => wrap(events.wrap(store)),
  });
  const portals = openPortals(fixture, events);
  const admin = await fixture.tenant('acme');
  const key = await fixture.keyOf(admin, 'viewer');
  await portals.dispatch();
  const newKey = async (over: object) => {
    const body = { name: 'portal', role: 'viewer', ...over };
    return (await fixture.call({ method: 'POST', path: '/v1/keys', key: admin, body })).body;
  };
  /** Something of the tenant that its feed shows. */
  const change = async (as = admin) => {
    const body = { cluster: `c${Math.random().toString(36).slice(2)}` };
    expect((await fixture.call({ method: 'POST', path: '/v1/join-tokens', key: as, body })).status).toBe(201);
    await fixture.call({ method: 'POST', path: '/v1/keys', key: as, body: { name: 'other', role: 'viewer' } });
  };
  const toldTo = async () => (await portals.dispatch()).frames.map(({ connectionId }) => connectionId).sort();
  return { ...fixture, portals, admin, key, newKey, change, toldTo };
}

describe('a portal that listens', () => {
  test('is told once of all that one batch of the stream holds, and nothing of what it is', async () => {
    const { portals, key, change } = await hosted();
    expect(await portals.connect('c1', key)).toEqual({ status: 200 });
    for (let i = 0; i < 5; i += 1) await change();
    expect((await portals.dispatch()).frames).toEqual([{ connectionId: 'c1', frame: news }]);
    expect((await portals.dispatch()).frames).toEqual([]);
  });

  test('is not told of what another tenant does', async () => {
    const { portals, key, tenant, change, toldTo } = await hosted();
    const other = await tenant('globex');
    await portals.connect('c1', key);
    await portals.connect('c2', other);
    await toldTo();
    await change(other);
    expect(await toldTo()).toEqual(['c2']);
    await change();
    expect(await toldTo()).toEqual(['c1']);
  });

  test('is answered its ping with the cursor after which the feed goes on', async () => {
    const { portals, key, change, call } = await hosted();
    await portals.connect('c1', key);
    const { status, body } = await portals.say('c1', ping);
    expect([status, body]).toEqual([200, { type: 'pong', cursor: expect.any(String) }]);
    const feed = async (cursor: string) =>
      (await call({ method: 'GET', path: `/v1/events?cursor=${encodeURIComponent(cursor)}`, key })).body;
    const { cursor } = body as { cursor: string };
    expect((await feed(cursor)).items).toEqual([]);
    await change();
    expect((await feed(cursor)).items.length).toBeGreaterThan(0);
  });

  test('is forgotten when it leaves, with a word or without', async () => {
    const { portals, key, change, toldTo, clock } = await hosted();
    for (const id of ['c1', 'c2', 'c3']) await portals.connect(id, key);
    clock.advance(60_000);
    await portals.disconnect('c1');
    portals.vanish('c2');
    await change();
    expect(await toldTo()).toEqual(['c3']);
    expect(await portals.known('acme')).toEqual(['c3']);
    expect((await portals.say('c2', ping)).status).toBe(410);
    clock.advance(connectionLifeMs);
    expect(await portals.known('acme')).toEqual([]);
  });

  test('is kept when the gateway has not opened its connection yet', async () => {
    const { portals, key, change, toldTo } = await hosted();
    await portals.connect('c1', key);
    portals.vanish('c1');
    await change();
    expect(await toldTo()).toEqual([]);
    expect(await portals.known('acme')).toEqual(['c1']);
  });
});

describe('a portal is hung up on at the next news', () => {
  test.each<[string, (made: Awaited<ReturnType<typeof hosted>>, id: string) => Promise<unknown>]>([
    ['key was revoked', ({ call, admin }, id) => call({ method: 'DELETE', path: `/v1/keys/${id}`, key: admin })],
    [
      'key was rotated',
      ({ call, admin }, id) => call({ method: 'POST', path: `/v1/keys/${id}/rotate`, key: admin, body: {} }),
    ],
    [
      'tenant is suspended',
      async ({ call, operatorKey, change }) => {
        await change();
        const body = { state: 'suspended' };
        return call({ method: 'PATCH', path: '/v1/tenants/acme', key: operatorKey, body });
      },
    ],
  ])('when its %s', async (_, end) => {
    const made = await hosted();
    const { portals, newKey, clock } = made;
    const { secret, key } = await newKey({});
    await portals.connect('c1', secret);
    await portals.dispatch();
    const answer = await end(made, key.id);
    expect((answer as { status: number }).status).toBeLessThan(300);
    clock.advance(10_001);
    expect((await portals.dispatch()).frames).toEqual([]);
    expect([portals.isOpen('c1'), await portals.known('acme')]).toEqual([false, []]);
  });

  test('and at its next ping, if that comes first', async () => {
    const { portals, newKey, call, admin } = await hosted();
    const { secret, key } = await newKey({});
    await portals.connect('c1', secret);
    await call({ method: 'DELETE', path: `/v1/keys/${key.id}`, key: admin });
    expect((await portals.say('c1', ping)).status).toBe(401);
    expect(portals.isOpen('c1')).toBe(false);
  });
});

test('of a tenant that is deleted no portal is known any more, and its own is closed at its next ping', async () => {
  const { portals, key, call, operatorKey } = await hosted();
  await portals.connect('c1', key);
  const deletion = await call({ method: 'DELETE', path: '/v1/tenants/acme?confirm=acme', key: operatorKey });
  expect(deletion.status).toBe(200);
  expect(await portals.known('acme')).toEqual([]);
  expect((await portals.say('c1', ping)).status).toBe(401);
  expect(portals.isOpen('c1')).toBe(false);
});

describe('a key is refused a socket', () => {
  test('that has no right to the feed, is unknown, or is of an operator', async () => {
    const { portals, newKey, operatorKey, key } = await hosted();
    const narrow = await newKey({ scopes: ['clusters:read'] });
    expect(await portals.connect('c1', narrow.secret)).toEqual({ status: 403, code: 'forbidden' });
    expect(await portals.connect('c2', operatorKey)).toEqual({ status: 401, code: 'unauthenticated' });
    expect(await portals.connect('c3', `${key.slice(0, -4)}xxxx`)).toEqual({ status: 401, code: 'unauthenticated' });
    expect(await portals.connect('c4', 'isk_')).toEqual({ status: 401, code: 'unauthenticated' });
    // A token of an identity provider is taken for that of an agent.
    expect(await portals.connect('c5', 'e30.e30.e30')).toMatchObject({ status: 401 });
    expect(await portals.known('acme')).toEqual([]);
  });

  test('beyond twenty of its tenant, also when they come at once, and not when one has left', async () => {
    const { portals, key, tenant } = await hosted();
    const answers = await Promise.all(
      Array.from({ length: maxListeners + 5 }, (_, i) => portals.connect(`c${i}`, key).catch(() => ({ status: 500 }))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(maxListeners);
    expect(await portals.connect('late', key)).toEqual({ status: 409, code: 'limit_reached' });
    expect((await portals.connect('other', await tenant('globex'))).status).toBe(200);
    await portals.disconnect((await portals.known('acme'))[0] ?? '');
    expect((await portals.connect('late', key)).status).toBe(200);
  });

  test('of a tenant that is suspended', async () => {
    const { portals, key, call, operatorKey } = await hosted();
    await call({ method: 'PATCH', path: '/v1/tenants/acme', key: operatorKey, body: { state: 'suspended' } });
    expect(await portals.connect('c1', key)).toEqual({ status: 403, code: 'tenant_suspended' });
  });
});

test('openings and frames of any kind count as requests', async () => {
  const { portals, newKey, clock } = await hosted({ requestsPerMinute: 10 });
  const { secret } = await newKey({});
  clock.advance(120_000);
  const statuses = [(await portals.connect('c1', secret)).status];
  for (const frame of [ping, { type: 'pong' }, '{', '', ping, ping, ping, ping, ping, ping, ping])
    statuses.push((await portals.say('c1', frame)).status);
  expect(statuses).toEqual([...Array(10).fill(200), 429, 429]);
  expect((await portals.connect('c2', secret)).status).toBe(429);
});

test('any frame is answered with a status and a pong at most', async () => {
  const { portals, key } = await hosted();
  await portals.connect('c1', key);
  const frame = fc.oneof(
    fc.record({ type: fc.constantFrom('ping', 'pong', '__proto__'), cursor: fc.jsonValue({ maxDepth: 1 }) }),
    fc.jsonValue({ maxDepth: 2 }),
    fc.string({ maxLength: 200 }),
  );
  await fc.assert(
    fc.asyncProperty(frame, async (one) => {
      const { status, body } = await portals.say('c1', one);
      expect(status).toBe(200);
      if (body !== undefined) expect(body).toEqual({ type: 'pong', cursor: expect.any(String) });
    }),
    { numRuns: 300 },
  );
});

test('of tenants without listeners the dispatcher makes one read for a batch, of one item for each of them', async () => {
  const asked: string[] = [];
  const wrap = (store: Store): Store => ({
    ...store,
    get: (pk, sk, signal) => {
      asked.push(pk);
      return store.get(pk, sk, signal);
    },
    getMany: (many, signal) => {
      asked.push(many.keys.map(({ pk }) => pk).join(' '));
      return store.getMany(many, signal);
    },
    query: (query, signal) => {
      asked.push(query.partition);
      return store.query(query, signal);
    },
  });
  const { change, tenant, portals } = await hosted({ wrap });
  for (const as of [undefined, await tenant('globex')]) for (let i = 0; i < 3; i += 1) await change(as);
  asked.length = 0;
  await portals.dispatch();
  expect(asked.map((keys) => keys.split(' ').sort())).toEqual([['t/acme/listeners', 't/globex/listeners']]);
});
