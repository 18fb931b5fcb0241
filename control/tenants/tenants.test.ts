import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import type { Caller } from '../access/caller.ts';
import { createMemoryStore } from '../adapters/memory/memory-store.ts';
import { adminOf, createBrokerClusters, origin } from '../testing/broker-clusters.ts';
import { countingReads } from '../testing/counting-store.ts';

async function started() {
  const clusters = createBrokerClusters();
  const issued = await clusters.control.tenants.bootstrap('default', origin);
  const secret = issued?.secret ?? '';
  const admin = await clusters.control.tenants.authenticate(secret, origin);
  return { ...clusters, admin, secret, tenants: clusters.control.tenants };
}
const refused = { code: 'unauthenticated' };

describe('an API key', () => {
  test('of the first admin is made once', async () => {
    const { tenants, admin } = await started();
    expect(admin).toMatchObject({
      tenant: 'default',
      role: 'admin',
      principal: expect.stringMatching(/^api-key\/ak_/),
    });
    expect(await tenants.bootstrap('default', origin)).toBeUndefined();
    await expect(tenants.bootstrap('No Tenant', origin)).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('is stored as a hash and recognised by its prefix', async () => {
    const { tenants, admin, secret, store } = await started();
    const everything = JSON.stringify([
      await store.query({ partition: 't/default/api-keys', limit: 10 }),
      await store.query({ partition: 't/default/audit', limit: 10 }),
      await store.outbox(undefined, 10),
    ]);
    expect(everything).not.toContain(secret);
    const { items } = await tenants.listKeys(admin);
    expect(items[0]?.prefix).toMatch(/^isk_default_/);
    expect(JSON.stringify(items)).not.toContain('hash');
  });

  test.each(['', 'isk_default_x', 'isk_default_00000000000000000000000001_wrong', 'Bearer', 'x'.repeat(10_000)])(
    'that is wrong (%#) is refused without a hint why',
    async (text) => {
      const { tenants } = await started();
      await expect(tenants.authenticate(text, origin)).rejects.toMatchObject({
        ...refused,
        message: 'this API key is unknown, revoked or expired',
      });
    },
  );

  test('with one character changed is refused', async () => {
    const { tenants, secret } = await started();
    const last = secret.at(-1) === 'A' ? 'B' : 'A';
    await expect(tenants.authenticate(secret.slice(0, -1) + last, origin)).rejects.toMatchObject(refused);
  });

  test('expires, and is refused from then on', async () => {
    const { tenants, admin, clock } = await started();
    const { secret } = await tenants.createKey(admin, { name: 'short', role: 'viewer', expiresInSeconds: 60 });
    expect((await tenants.authenticate(secret, origin)).role).toBe('viewer');
    clock.advance(60_000);
    await expect(tenants.authenticate(secret, origin)).rejects.toMatchObject(refused);
  });

  test('is refused once revoked, and revoking twice is once', async () => {
    const { tenants, admin } = await started();
    const { secret, key } = await tenants.createKey(admin, { name: 'ci', role: 'operator' });
    const first = await tenants.revokeKey(admin, key.id);
    expect(await tenants.revokeKey(admin, key.id)).toEqual(first);
    await expect(tenants.authenticate(secret, origin)).rejects.toMatchObject(refused);
  });

  test('is not revoked by itself, so that no caller locks itself out by accident', async () => {
    const { tenants, admin, secret } = await started();
    const own = admin.principal.slice('api-key/'.length);
    await expect(tenants.revokeKey(admin, own)).rejects.toMatchObject({
      code: 'in_use',
      detail: { remedy: expect.stringContaining('rotate it') },
    });
    await tenants.authenticate(secret, origin);
    const other = await tenants.createKey(admin, { name: 'other', role: 'admin' });
    await tenants.revokeKey(await tenants.authenticate(other.secret, origin), own);
    await expect(tenants.authenticate(secret, origin)).rejects.toMatchObject(refused);
  });

  test('can be rotated with an overlap, once', async () => {
    const { tenants, admin, clock } = await started();
    const old = await tenants.createKey(admin, { name: 'ci', role: 'operator', scopes: ['peerings:write'] });
    const next = await tenants.rotateKey(admin, old.key.id, 3_600);
    expect(next.key).toMatchObject({ name: 'ci', role: 'operator', scopes: ['peerings:write'] });
    await tenants.authenticate(old.secret, origin);
    await tenants.authenticate(next.secret, origin);
    await expect(tenants.rotateKey(admin, old.key.id)).rejects.toMatchObject({ code: 'in_use' });
    clock.advance(3_600_000);
    await expect(tenants.authenticate(old.secret, origin)).rejects.toMatchObject(refused);
    await tenants.authenticate(next.secret, origin);
  });

  test('with scopes may do only what they name, and makes no key that may do more', async () => {
    const { control, tenants, admin } = await started();
    const { secret } = await tenants.createKey(admin, {
      name: 'keys',
      role: 'admin',
      scopes: ['keys:write', 'keys:read'],
    });
    const scoped = await tenants.authenticate(secret, origin);
    await expect(control.clusters.list(scoped)).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('clusters:read'),
    });
    await expect(tenants.createKey(scoped, { name: 'more', role: 'admin' })).rejects.toMatchObject({
      code: 'forbidden',
    });
    await tenants.createKey(scoped, { name: 'same', role: 'admin', scopes: ['keys:read'] });
  });

  test('revokes only keys that have no right beyond its own', async () => {
    const { tenants, admin, secret } = await started();
    const scopes = ['keys:write', 'keys:read', 'peerings:read'] as const;
    const narrow = await tenants.createKey(admin, { name: 'keys', role: 'admin', scopes: [...scopes] });
    const scoped = await tenants.authenticate(narrow.secret, origin);
    const equal = await tenants.createKey(admin, { name: 'equal', role: 'admin', scopes: ['peerings:read'] });
    const wider = await tenants.createKey(admin, { name: 'wider', role: 'operator', scopes: ['peerings:write'] });
    await tenants.revokeKey(scoped, equal.key.id);
    for (const id of [wider.key.id, admin.principal.slice('api-key/'.length)]) {
      await expect(tenants.revokeKey(scoped, id)).rejects.toMatchObject({ code: 'forbidden' });
    }
    await tenants.authenticate(wider.secret, origin);
    await tenants.authenticate(secret, origin);
  });

  test.each([
    { what: 'no name', input: { name: '', role: 'viewer' as const } },
    { what: 'a life of a second', input: { name: 'x', role: 'viewer' as const, expiresInSeconds: 1 } },
    { what: 'no scope at all', input: { name: 'x', role: 'viewer' as const, scopes: [] } },
  ])('with $what is refused', async ({ input }) => {
    const { tenants, admin } = await started();
    await expect(tenants.createKey(admin, input)).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('with a scope beyond its role is refused, naming both', async () => {
    const { tenants, admin } = await started();
    await expect(tenants.createKey(admin, { name: 'x', role: 'viewer', scopes: ['keys:write'] })).rejects.toMatchObject(
      {
        code: 'fields_conflict',
        message: 'scopes has keys:write, which role viewer does not allow',
      },
    );
  });
});

test.each([
  { role: 'viewer', may: ['clusters', 'peerings', 'events'], not: ['join', 'audit', 'keys'] },
  { role: 'operator', may: ['clusters', 'peerings', 'events', 'join', 'audit'], not: ['keys'] },
  { role: 'admin', may: ['clusters', 'peerings', 'events', 'join', 'audit', 'keys'], not: [] },
] as const)('a $role may what a $role may', async ({ role, may, not }) => {
  const { control, admin } = await started();
  const caller: Caller = { ...admin, role };
  const attempts: Record<string, () => Promise<unknown>> = {
    clusters: () => control.clusters.list(caller),
    peerings: () => control.peerings.list(caller),
    events: () => control.events.list(caller),
    join: () => control.clusters.createJoinToken(caller, 'rome'),
    audit: () => control.audit.list(caller),
    keys: () => control.tenants.listKeys(caller),
  };
  for (const what of may) await expect(attempts[what]?.()).resolves.toBeDefined();
  for (const what of not) await expect(attempts[what]?.()).rejects.toMatchObject({ code: 'forbidden' });
});

test('every change is in the audit log with principal, address and object', async () => {
  const { control, tenants, admin } = await started();
  const caller = { ...admin, from: '203.0.113.9', requestId: 'rq-42' };
  const { key } = await tenants.createKey(caller, { name: 'ci', role: 'viewer' });
  await tenants.revokeKey(caller, key.id);
  const { items } = await control.audit.list(admin, { subject: `api-key/${key.id}` });
  expect(items.map((record) => record.action)).toEqual(['api-key.revoke', 'api-key.create']);
  expect(items[0]).toMatchObject({
    principal: admin.principal,
    from: '203.0.113.9',
    requestId: 'rq-42',
    before: { name: 'ci' },
    after: { revokedAt: expect.any(Number) },
  });
});

test('a page of a hundred keys, and one of a hundred tenants, is two requests of the store', async () => {
  const clock = new ManualClock();
  const { store, of } = countingReads(createMemoryStore({ clock }));
  const { tenants } = createBrokerClusters({ clock, deps: { store } }).control;
  for (let i = 0; i < 100; i += 1) await tenants.bootstrap(`t-${i}`, origin);
  const secrets: string[] = [];
  for (let i = 0; i < 100; i += 1)
    secrets.push((await tenants.createKey(adminOf('t-0'), { name: `k${i}`, role: 'viewer' })).secret);
  for (const secret of secrets) await tenants.authenticate(secret, origin);
  const operator = await tenants.operators.authenticate((await tenants.operators.bootstrap(origin)) ?? '', origin);
  expect(
    await of(async () => {
      const { items } = await tenants.listKeys(adminOf('t-0'), { limit: 101 });
      expect(items.filter(({ lastUsedAt }) => lastUsedAt === clock.now())).toHaveLength(100);
    }),
  ).toEqual({ items: 202, requests: 2 });
  expect(
    await of(async () => {
      const { items } = await tenants.operators.list(operator, { limit: 100 });
      expect(items.map(({ name }) => name)).toEqual(Array.from({ length: 100 }, (_, i) => `t-${i}`).sort());
    }),
  ).toEqual({ items: 200, requests: 2 });
});
