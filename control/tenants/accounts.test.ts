import { describe, expect, test } from 'vitest';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import type { OperatorCaller } from '../access/caller.ts';
import { key, partition } from '../store/keys.ts';
import { adminOf, createBrokerClusters, origin } from '../testing/broker-clusters.ts';
import { withoutSecrets } from './export.ts';
import { holdings } from './partitions.ts';

const operator: OperatorCaller = { ...origin, principal: 'operator/ok_test' };

function started() {
  const clock = new ManualClock();
  const clusters = createBrokerClusters({ clock, deps: { store: createMemoryStore({ clock }) } });
  return { ...clusters, tenants: clusters.control.tenants, operators: clusters.control.tenants.operators };
}

describe('an operator', () => {
  test('gets its first key once, and is recognised by it', async () => {
    const { operators, store } = started();
    const secret = (await operators.bootstrap(origin)) ?? '';
    expect(secret).toMatch(/^iso_/);
    expect(await operators.bootstrap(origin)).toBeUndefined();
    expect((await operators.authenticate(secret, origin)).principal).toMatch(/^operator\/ok_/);
    const last = secret.at(-1) === 'A' ? 'B' : 'A';
    await expect(operators.authenticate(secret.slice(0, -1) + last, origin)).rejects.toMatchObject({
      code: 'unauthenticated',
    });
    const kept = JSON.stringify((await store.query({ partition: partition.operators, limit: 10 })).items);
    expect(kept).not.toContain(secret);
  });

  test('makes a tenant with its first admin key, once', async () => {
    const { operators, tenants } = started();
    const { tenant, issued } = await operators.create(operator, {
      name: 'acme',
      displayName: 'Acme',
      limits: { clusters: 3 },
    });
    expect(tenant).toMatchObject({ name: 'acme', displayName: 'Acme', state: 'active', limits: { clusters: 3 } });
    expect(await tenants.authenticate(issued.secret, origin)).toMatchObject({ tenant: 'acme', role: 'admin' });
    await expect(operators.create(operator, { name: 'acme' })).rejects.toMatchObject({ code: 'already_exists' });
  });

  test.each(['Acme', '', '-x', 'me', 'system', 'a'.repeat(64)])('makes no tenant named %j', async (name) => {
    await expect(started().operators.create(operator, { name })).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('suspends a tenant: every key is refused with the reason, until it is resumed', async () => {
    const { operators, tenants } = started();
    const { issued } = await operators.create(operator, { name: 'acme' });
    await tenants.authenticate(issued.secret, origin);
    await operators.change(operator, 'acme', { state: 'suspended', reason: 'unpaid' });
    await expect(tenants.authenticate(issued.secret, origin)).rejects.toMatchObject({
      code: 'tenant_suspended',
      message: expect.stringContaining('unpaid'),
    });
    await expect(tenants.mustServe('acme')).rejects.toMatchObject({ code: 'tenant_suspended' });
    const resumed = await operators.change(operator, 'acme', { state: 'active' });
    expect(resumed.suspendedReason).toBeUndefined();
    await tenants.authenticate(issued.secret, origin);
  });

  test('changes a tenant conditionally, and takes overrides back', async () => {
    const { operators } = started();
    await operators.create(operator, { name: 'acme' });
    const set = await operators.change(operator, 'acme', { limits: { peerings: 1 } }, { ifVersion: 1 });
    expect([set.limits.peerings, set.version]).toEqual([1, 2]);
    await expect(operators.change(operator, 'acme', {}, { ifVersion: 1 })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    const back = await operators.change(operator, 'acme', { limits: { peerings: null } });
    expect(back.limits.peerings).toBeGreaterThan(1);
    await expect(operators.change(operator, 'acme', { limits: { peerings: -1 } })).rejects.toMatchObject({
      code: 'invalid_input',
    });
  });

  test('is named in the audit log of the tenant', async () => {
    const { operators, control } = started();
    await operators.create(operator, { name: 'acme' });
    await operators.change(operator, 'acme', { displayName: 'New' });
    const { items } = await control.audit.list(adminOf('acme'));
    expect(items.map(({ action, principal }) => [action, principal])).toEqual([
      ['tenant.change', 'operator/ok_test'],
      ['tenant.create', 'operator/ok_test'],
    ]);
  });
});

describe('a member', () => {
  const identity = { issuer: 'https://id.example', subject: 'u1' };

  test('is found by issuer and subject, or by a verified address in any case', async () => {
    const { tenants } = started();
    const { members } = tenants;
    const bySubject = await members.add(adminOf('acme'), { ...identity, role: 'viewer' });
    const byEmail = await members.add(adminOf('acme'), { email: 'Ada@Example.org', role: 'admin' });
    expect((await members.find('acme', identity))?.id).toBe(bySubject.id);
    const other = { issuer: 'https://id.example', subject: 'u2' };
    expect(await members.find('acme', other)).toBeUndefined();
    expect((await members.find('acme', { ...other, verifiedEmail: 'ada@example.ORG' }))?.id).toBe(byEmail.id);
    expect(await members.find('bolt', identity)).toBeUndefined();
  });

  test('is added once, changed conditionally, and gone when removed', async () => {
    const { tenants } = started();
    const { members } = tenants;
    const admin = adminOf('acme');
    const added = await members.add(admin, { ...identity, role: 'viewer' });
    await expect(members.add(admin, { ...identity, role: 'admin' })).rejects.toMatchObject({ code: 'already_exists' });
    expect(await members.change(admin, added.id, { role: 'operator' }, { ifVersion: 1 })).toMatchObject({
      role: 'operator',
      version: 2,
    });
    await expect(members.change(admin, added.id, {}, { ifVersion: 1 })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    await members.remove(admin, added.id);
    expect(await members.find('acme', identity)).toBeUndefined();
    await expect(members.get(admin, added.id)).rejects.toMatchObject({ code: 'not_found' });
    await members.add(admin, { ...identity, role: 'viewer' });
  });

  test.each([{}, { email: 'a@b.c', subject: 'x' }, { issuer: 'https://id.example' }, { subject: 'x' }])(
    'is not named by %j',
    async (named) => {
      const { members } = started().tenants;
      await expect(members.add(adminOf('acme'), { ...named, role: 'viewer' })).rejects.toMatchObject({
        code: 'fields_conflict',
      });
    },
  );
});

test('a key with scopes cannot grant more rights than it has', async () => {
  const { tenants } = started();
  const scoped = { ...adminOf('acme'), scopes: ['members:write', 'issuers:write', 'clusters:read'] } as const;
  const refused = { code: 'forbidden' };
  const named = { email: 'eve@example.org' };
  await expect(tenants.members.add(scoped, { ...named, role: 'viewer' })).rejects.toMatchObject(refused);
  const member = await tenants.members.add(adminOf('acme'), { ...named, role: 'viewer' });
  await expect(tenants.members.change(scoped, member.id, { role: 'admin' })).rejects.toMatchObject(refused);
  expect(await tenants.members.change(scoped, member.id, { name: 'Eve' })).toMatchObject({
    name: 'Eve',
    role: 'viewer',
  });
  const issuer = { url: 'https://id.example', audience: 'x' };
  await expect(tenants.issuers.register(scoped, issuer)).rejects.toMatchObject(refused);
});

test('a key says when it was last used, to the hour', async () => {
  const { tenants, clock } = started();
  const secret = (await tenants.bootstrap('acme', origin))?.secret ?? '';
  const lastUsed = async () => (await tenants.listKeys(adminOf('acme'))).items[0]?.lastUsedAt;
  expect(await lastUsed()).toBeUndefined();
  const at = clock.now();
  await tenants.authenticate(secret, origin);
  clock.advance(60_000);
  await tenants.authenticate(secret, origin);
  expect(await lastUsed()).toBe(at);
  clock.advance(3_600_000);
  await tenants.authenticate(secret, origin);
  expect(await lastUsed()).toBe(clock.now());
});

/** The two that are per other tenant. */
const named = (path: string): string => path.replace(/^\/(with|open-requests)\/\{cluster\}/, '/$1/{tenant}');

/** Every partition of the key layout, with the names that the table of holdings uses. */
function layout(): Set<string> {
  const name = '{cluster}';
  const found = new Set<string>();
  for (const make of [...Object.values(partition), ...Object.values(key)] as unknown[]) {
    if (typeof make !== 'function') continue;
    const made = (make as (...args: unknown[]) => string | { pk: string })('TENANT', name, name, name);
    const pk = typeof made === 'string' ? made : made.pk;
    if (pk.startsWith('t/TENANT')) found.add(named(pk.slice('t/TENANT'.length)));
  }
  return found;
}

test('export and deletion know every partition of the key layout', () => {
  const known = new Set(holdings.map(({ path }) => path));
  const unknown = [...layout()].filter((path) => !known.has(path));
  expect(unknown).toEqual([]);
  for (const { kind, because } of holdings) expect(kind ?? because).toBeTruthy();
});

describe('an export', () => {
  test('holds everything, page by page, and no secret', async () => {
    const { control, tenants, join } = started();
    for (const name of ['rome', 'milan']) await join(name, { tenant: 'acme' });
    const admin = adminOf('acme');
    const { secret } = await tenants.createKey(admin, { name: 'ci', role: 'viewer' });
    await tenants.members.add(admin, { email: 'ada@example.org', role: 'viewer' });
    const { peering } = await control.peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: {} });
    const lines: { kind: string; id: string; value: unknown }[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const page = await tenants.export.page(admin, cursor);
      lines.push(...page.lines);
      cursor = page.cursor;
      pages += 1;
    } while (cursor !== undefined && pages < 100);
    const kinds = new Set(lines.map(({ kind }) => kind));
    for (const kind of ['tenant', 'api-key', 'member', 'cluster', 'cluster-state', 'peering', 'audit-record'])
      expect(kinds).toContain(kind);
    expect(lines.find(({ id }) => id === peering.id)).toBeDefined();
    const text = JSON.stringify(lines);
    expect(text).not.toContain(secret);
    for (const { value } of (await control.peerings.list(admin)).items.map((value) => ({ value })))
      expect(value).toBeDefined();
    expect(text).not.toMatch(/"(hash|nonce|signedNonce)":"(?!\[not exported\])/);
    expect(new Set(lines.map(({ kind, id }) => `${kind} ${id}`)).size).toBe(lines.length);
  });

  test('names what it leaves out', () => {
    const value = { hash: 'x', kind: 'Secret', data: { a: 'b' }, list: [{ clientSecret: 's', name: 'n' }] };
    expect(withoutSecrets(value)).toEqual({
      hash: '[not exported]',
      kind: 'Secret',
      data: '[not exported]',
      list: [{ clientSecret: '[not exported]', name: 'n' }],
    });
  });

  test.each(['', 'x', 'eyJoIjo5OTl9', Buffer.from('{"h":0,"c":"../x"}').toString('base64url')])(
    'refuses the cursor %j',
    async (cursor) => {
      const { tenants } = started();
      await expect(tenants.export.page(adminOf('acme'), cursor)).rejects.toMatchObject({ code: 'cursor_unknown' });
    },
  );
});

describe('a deletion', () => {
  async function peered() {
    const clusters = started();
    for (const name of ['rome', 'milan']) await clusters.join(name, { tenant: 'acme' });
    await clusters.join('turin', { tenant: 'bolt' });
    const admin = adminOf('acme');
    const { peering } = await clusters.control.peerings.request(admin, {
      consumer: 'rome',
      provider: 'milan',
      resources: {},
    });
    await clusters.until(async () => (await clusters.control.peerings.get(admin, peering.id)).phase === 'Ready');
    return { ...clusters, admin, deletion: clusters.control.tenants.deletion };
  }

  test('needs the confirmation and the name, and peerings that have ended', async () => {
    const { admin, deletion } = await peered();
    const { confirmation, peerings } = await deletion.request(admin);
    expect(peerings).toHaveLength(1);
    const refused = { code: 'fields_conflict' };
    await expect(deletion.confirm(admin, { name: 'bolt', confirmation })).rejects.toMatchObject(refused);
    await expect(deletion.confirm(admin, { name: 'acme', confirmation: 'del_x' })).rejects.toMatchObject(refused);
    await expect(deletion.confirm(admin, { name: 'acme', confirmation })).rejects.toMatchObject({ code: 'in_use' });
  });

  test('is forgotten when it is not confirmed within 15 minutes', async () => {
    const { admin, deletion, clock } = await peered();
    const { confirmation } = await deletion.request(admin);
    clock.advance(15 * 60_000);
    await expect(deletion.confirm(admin, { name: 'acme', confirmation, force: true })).rejects.toMatchObject({
      code: 'fields_conflict',
    });
  });

  test('with force ends the peerings, then leaves nothing but a tombstone, and others unharmed', async () => {
    const { admin, deletion, control, store, until } = await peered();
    const ended: string[] = [];
    const { endStream } = store;
    store.endStream = async (stream, signal) => {
      ended.push(stream);
      await endStream(stream, signal);
    };
    const before = JSON.stringify(await control.clusters.list(adminOf('bolt')));
    const { confirmation } = await deletion.request(admin);
    expect(await deletion.confirm(admin, { name: 'acme', confirmation, force: true })).toMatchObject({
      state: 'deleting',
    });
    await expect(control.tenants.mustBeActive('acme')).rejects.toMatchObject({ code: 'tenant_deleting' });
    // Agents of a deleted tenant are refused: what `until` asks of them then fails, which is the end.
    await until(async () => (await deletion.sweep()) === 0).catch((error: unknown) => {
      if (!/not joined|not found|no cluster/.test(String(error))) throw error;
    });
    await expect(control.tenants.own.get(admin)).rejects.toMatchObject({ code: 'not_found' });
    for (const path of layout()) {
      for (const cluster of ['rome', 'milan']) {
        const query = { partition: `t/acme${path.replaceAll('{cluster}', cluster)}`, limit: 10 };
        expect((await store.query(query)).items.map(({ pk, sk }) => `${pk} ${sk}`)).toEqual([]);
      }
    }
    expect(ended).toEqual(['acme']);
    const { pk, sk } = key.tombstone('acme');
    expect((await store.get(pk, sk))?.value).toMatchObject({ name: 'acme', by: admin.principal });
    await expect(control.tenants.operators.create(operator, { name: 'acme' })).rejects.toMatchObject({
      code: 'already_exists',
    });
    expect(await control.tenants.bootstrap('acme', origin)).toBeUndefined();
    expect(JSON.stringify(await control.clusters.list(adminOf('bolt'))).replace(/"online":\w+/, '')).toBe(
      before.replace(/"online":\w+/, ''),
    );
  });

  test('by an operator needs the name twice', async () => {
    const { operators, deletion } = { ...started().control.tenants };
    await operators.create(operator, { name: 'acme' });
    await expect(deletion.byOperator(operator, 'acme', { confirm: 'acm' })).rejects.toMatchObject({
      code: 'fields_conflict',
    });
    expect(await deletion.byOperator(operator, 'acme', { confirm: 'acme' })).toEqual({
      state: 'deleted',
      peerings: [],
    });
    await expect(operators.get(operator, 'acme')).rejects.toMatchObject({ code: 'not_found' });
    expect((await operators.list(operator)).items).toEqual([]);
  });
});
