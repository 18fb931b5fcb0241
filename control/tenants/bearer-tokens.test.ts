import { generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { createHttpsJson } from '../adapters/https-json/https-json.ts';
import { adminOf, createBrokerClusters, origin } from '../testing/broker-clusters.ts';
import { type IdentityProvider, startIdentityProvider } from '../testing/identity-provider.ts';

let idp: IdentityProvider;
beforeAll(async () => {
  idp = await startIdentityProvider(['portal', 'robot']);
});
afterAll(() => idp.close());

const audience = 'https://broker.test';

async function clusters() {
  // The provider's clock is the real one.
  const clock = new ManualClock(Date.now());
  const made = createBrokerClusters({ clock, deps: { documents: createHttpsJson({ allowPrivateAddresses: true }) } });
  const { tenants } = made.control;
  for (const name of ['acme', 'bolt']) await tenants.bootstrap(name, origin);
  const admin = adminOf('acme');
  return {
    clock,
    tenants,
    admin,
    enter: (token: string, tenant: string | undefined = 'acme') => tenants.authenticateToken(tenant, token, origin),
  };
}
const refused = { code: 'unauthenticated', message: expect.stringContaining('this bearer token is not accepted') };

describe('a token of a real identity provider', () => {
  test('lets a member in, with its role of that moment', async () => {
    const { tenants, admin, enter } = await clusters();
    await tenants.issuers.register(admin, { url: idp.url, audience });
    const token = await idp.token('portal');
    await expect(enter(token)).rejects.toMatchObject(refused);
    const member = await tenants.members.add(admin, { issuer: idp.url, subject: 'portal', role: 'operator' });
    expect(await enter(token)).toMatchObject({ tenant: 'acme', role: 'operator', principal: `member/${member.id}` });
    await tenants.members.change(admin, member.id, { role: 'viewer' });
    expect(await enter(token)).toMatchObject({ role: 'viewer' });
    await tenants.members.remove(admin, member.id);
    await expect(enter(token)).rejects.toMatchObject(refused);
  });

  test('lets a member in by a verified address only', async () => {
    const { tenants, admin, enter } = await clusters();
    await tenants.issuers.register(admin, { url: idp.url, audience });
    await tenants.members.add(admin, { email: 'Ada@example.org', role: 'admin' });
    const claims = { email: 'ada@Example.org', email_verified: true };
    expect(await enter(await idp.token('portal', { claims }))).toMatchObject({ role: 'admin' });
    for (const email_verified of [false, 'true', undefined]) {
      const token = await idp.token('portal', { claims: { ...claims, email_verified } });
      await expect(enter(token)).rejects.toMatchObject(refused);
    }
  });

  test.each([
    { claim: 'groups', value: ['staff', 'isthmus-ops', 'isthmus-view'] },
    { claim: 'realm_access.roles', value: { roles: ['isthmus-ops'] } },
    { claim: 'https://example.org/role', value: 'isthmus-ops' },
  ])('gives the highest role that the claim $claim is mapped to', async ({ claim, value }) => {
    const { tenants, admin, enter } = await clusters();
    const roles = { 'isthmus-ops': 'operator', 'isthmus-view': 'viewer' } as const;
    await tenants.issuers.register(admin, { url: idp.url, audience, claims: { role: claim }, roles });
    const name = claim.startsWith('https:') ? claim : (claim.split('.')[0] ?? '');
    const caller = await enter(await idp.token('robot', { claims: { [name]: value } }));
    expect(caller).toMatchObject({ role: 'operator', principal: expect.stringMatching(/^oidc\/is_\w+\/robot$/) });
    await expect(
      enter(await idp.token('robot', { claims: { [name]: ['constructor', 'staff'] } })),
    ).rejects.toMatchObject(refused);
    await expect(enter(await idp.token('robot'))).rejects.toMatchObject(refused);
  });

  test('opens no other tenant, and says the same of one that does not exist', async () => {
    const { tenants, admin, enter } = await clusters();
    await tenants.issuers.register(admin, { url: idp.url, audience });
    await tenants.members.add(admin, { issuer: idp.url, subject: 'portal', role: 'admin' });
    const token = await idp.token('portal');
    const messages = new Set<string>();
    for (const tenant of ['bolt', 'nobody', 'No Tenant', 'acme/x', '']) {
      const error = await enter(token, tenant).catch((caught: Error) => caught);
      expect(error).toMatchObject(refused);
      messages.add((error as Error).message);
    }
    expect(messages.size).toBe(1);
    await expect(tenants.authenticateToken(undefined, token, origin)).rejects.toMatchObject({
      code: 'unauthenticated',
      message: expect.stringContaining('isthmus-tenant'),
    });
  });

  test('is refused for another audience, when it is expired, and when the tenant is suspended', async () => {
    const { tenants, admin, enter, clock } = await clusters();
    await tenants.issuers.register(admin, { url: idp.url, audience });
    await tenants.members.add(admin, { issuer: idp.url, subject: 'portal', role: 'admin' });
    await expect(enter(await idp.token('portal', { audience: 'https://other.test' }))).rejects.toMatchObject(refused);
    const token = await idp.token('portal');
    await enter(token);
    const operator = { ...origin, principal: 'operator/ok_1' };
    await tenants.operators.change(operator, 'acme', { state: 'suspended' });
    await expect(enter(token)).rejects.toMatchObject({ code: 'tenant_suspended' });
    await tenants.operators.change(operator, 'acme', { state: 'active' });
    clock.advance(700_000);
    await expect(enter(token)).rejects.toMatchObject(refused);
  });

  test('is accepted after the provider changed its keys, and its old ones are not', async () => {
    const { tenants, admin, enter, clock } = await clusters();
    await tenants.issuers.register(admin, { url: idp.url, audience });
    await tenants.members.add(admin, { issuer: idp.url, subject: 'portal', role: 'admin' });
    const old = await idp.token('portal');
    await enter(old);
    await idp.rotate();
    expect(await enter(await idp.token('portal'))).toMatchObject({ role: 'admin' });
    await expect(enter(old)).rejects.toMatchObject(refused);
    const before = idp.keyFetches();
    // Unknown key ids cause no traffic within half a minute.
    for (let i = 0; i < 20; i += 1) await enter(old).catch(() => undefined);
    expect(idp.keyFetches()).toBe(before);
    clock.advance(31_000);
    await Promise.all(Array.from({ length: 20 }, () => enter(old).catch(() => undefined)));
    expect(idp.keyFetches()).toBe(before + 1);
  });

  test('is still accepted while the provider is away, for a day', async () => {
    const away = await startIdentityProvider(['portal'], 200_000);
    const { tenants, admin, enter, clock } = await clusters();
    await tenants.issuers.register(admin, { url: away.url, audience });
    await tenants.members.add(admin, { issuer: away.url, subject: 'portal', role: 'admin' });
    const token = await away.token('portal');
    await away.close();
    clock.advance(23 * 3_600_000);
    await enter(token);
    clock.advance(2 * 3_600_000);
    await expect(enter(token)).rejects.toMatchObject(refused);
  });
});

describe('a token that was tampered with is refused', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const forged = (header: object, payload: object): string =>
    [header, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');

  test.each([
    'by another key',
    'without a signature',
    'with a symmetric key',
    'with its payload changed',
    'without an end',
  ])('%s', async (how) => {
    const { tenants, admin, enter } = await clusters();
    await tenants.issuers.register(admin, { url: idp.url, audience });
    await tenants.members.add(admin, { issuer: idp.url, subject: 'portal', role: 'admin' });
    const good = await idp.token('portal');
    const [head = '', body = '', signature = ''] = good.split('.');
    const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string; alg: string };
    const payload = JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>;
    const signed = new SignJWT(payload);
    const tokens: Record<string, () => Promise<string> | string> = {
      'by another key': () => signed.setProtectedHeader(header).sign(privateKey),
      'without a signature': () => `${forged({ ...header, alg: 'none' }, payload)}.x`,
      'with a symmetric key': () =>
        new SignJWT(payload).setProtectedHeader({ alg: 'HS256', kid: header.kid }).sign(Buffer.from('x'.repeat(32))),
      'with its payload changed': () => `${forged(header, { ...payload, sub: 'robot' })}.${signature}`,
      'without an end': () =>
        new SignJWT({ ...payload, exp: undefined } as never).setProtectedHeader(header).sign(privateKey),
    };
    await enter(good);
    await expect(enter((await tokens[how]?.()) ?? '')).rejects.toMatchObject(refused);
  });
});

describe('an issuer', () => {
  test.each([
    'http://id.example.org',
    'https://127.0.0.1',
    'https://10.1.2.3/realm',
    'https://[::1]',
    'https://[fd00::1]',
    'https://169.254.169.254',
    'https://localhost:8080',
    'https://user:pass@id.example.org',
    'https://id.example.org/?x=1',
    'file:///etc/passwd',
    'id.example.org',
  ])('at %s is refused', async (url) => {
    const { control } = createBrokerClusters({ deps: { documents: createHttpsJson() } });
    await expect(control.tenants.issuers.register(adminOf('acme'), { url, audience })).rejects.toMatchObject({
      code: 'url_refused',
      detail: { field: 'url' },
    });
  });

  test('whose name leads to a private address is not connected to', async () => {
    const documents = createHttpsJson({
      lookup: (_name, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }] as never, 4),
    });
    const { control } = createBrokerClusters({ deps: { documents } });
    await expect(
      control.tenants.issuers.register(adminOf('acme'), { url: 'https://rebound.example', audience }),
    ).rejects.toMatchObject({
      code: 'issuer_unusable',
      message: expect.stringContaining('not public'),
    });
  });

  test('is registered once, listed, and refused beyond ten', async () => {
    const { tenants, admin } = await clusters();
    const { issuers } = tenants;
    const first = await issuers.register(admin, { url: idp.url, audience });
    await expect(issuers.register(admin, { url: idp.url, audience })).rejects.toMatchObject({ code: 'already_exists' });
    for (let i = 1; i < 10; i += 1) await issuers.register(admin, { url: idp.url, audience: `a${i}` });
    await expect(issuers.register(admin, { url: idp.url, audience: 'more' })).rejects.toMatchObject({
      code: 'limit_reached',
    });
    expect((await issuers.list(admin)).items).toHaveLength(10);
    await issuers.remove(admin, first.id);
    await expect(issuers.remove(admin, first.id)).rejects.toMatchObject({ code: 'not_found' });
    expect((await issuers.list(adminOf('bolt'))).items).toEqual([]);
  });

  test('must be the one that its discovery document names', async () => {
    const { tenants, admin } = await clusters();
    const url = idp.url.replace('127.0.0.1', 'localhost');
    await expect(tenants.issuers.register(admin, { url, audience })).rejects.toMatchObject({
      code: 'issuer_unusable',
    });
  });
});
