/** The REST API across tenants as a portal sees it: statuses, ETags, pages, problems, repeated requests. */
import { expect, test } from 'vitest';
import { worldlyFacts } from '#control/testing/two-tenants.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';
import { Invitation, PeeringRequest } from '#shared/schema/api/cross-tenant.ts';
import { Peering, Problem } from '#shared/schema/api/resources.ts';

async function setUp() {
  const clusters = await createApiFixture();
  const [acme, bolt, corp] = [
    await clusters.tenant('acme'),
    await clusters.tenant('bolt'),
    await clusters.tenant('corp'),
  ];
  await clusters.join({ tenant: 'acme', key: acme, cluster: 'rome', facts: worldlyFacts });
  await clusters.join({ tenant: 'bolt', key: bolt, cluster: 'milan', facts: worldlyFacts });
  const post = (key: string, path: string, body: unknown, headers: Record<string, string> = {}) =>
    clusters.call({ method: 'POST', path, key, body, headers });
  const get = (key: string, path: string, headers: Record<string, string> = {}) =>
    clusters.call({ method: 'GET', path, key, headers });
  const remove = (key: string, path: string, headers: Record<string, string> = {}) =>
    clusters.call({ method: 'DELETE', path, key, headers });
  return { ...clusters, acme, bolt, corp, post, get, remove };
}

test('an invitation from its making to the end of its peering', async () => {
  const { acme, bolt, corp, post, get, remove } = await setUp();
  const made = await post(bolt, '/v1/invitations', { cluster: 'milan', limits: { cpu: '4' }, uses: 2 });
  expect(made.status).toBe(201);
  const { id } = Invitation.parse(made.body.invitation);
  const read = await get(bolt, `/v1/invitations/${id}`);
  expect([read.status, read.headers.etag]).toEqual([200, '"1"']);
  expect(read.text).not.toContain(made.body.code);
  const redeemed = await post(acme, '/v1/invitations/redeem', { code: made.body.code, consumer: 'rome' });
  expect(redeemed.status).toBe(202);
  const peering = Peering.parse(redeemed.body);
  expect(peering.across).toMatchObject({ side: 'consumer', peerTenant: 'bolt', limits: { cpu: '4' } });
  expect((await post(acme, '/v1/invitations/redeem', { code: made.body.code, consumer: 'rome' })).status).toBe(200);
  for (const key of [acme, bolt]) {
    expect((await get(key, '/v1/peerings?consumer=rome&provider=milan')).body.items).toHaveLength(1);
    expect((await get(key, `/v1/peerings/${peering.id}`)).status).toBe(200);
  }
  for (const path of [`/v1/peerings/${peering.id}`, `/v1/invitations/${id}`])
    for (const method of ['GET', 'DELETE'] as const) {
      const foreign = method === 'GET' ? await get(corp, path) : await remove(corp, path);
      const never = await get(corp, path.replace(/_\w+$/, '_nothing'));
      expect([foreign.status, foreign.body.code]).toEqual([404, 'not_found']);
      expect(foreign.body.title).toBe(never.body.title);
    }
  const { headers } = await get(bolt, `/v1/peerings/${peering.id}`);
  expect((await remove(bolt, `/v1/peerings/${peering.id}`, { 'if-match': '"999"' })).status).toBe(412);
  expect((await remove(bolt, `/v1/peerings/${peering.id}`, { 'if-match': headers.etag ?? '' })).status).toBe(202);
  expect((await get(acme, `/v1/peerings/${peering.id}`)).body.across.endedBy).toBe('provider');
  expect((await remove(bolt, `/v1/invitations/${id}`)).body.state).toBe('revoked');
});

test('a code that is wrong is nowhere in the problem that it causes', async () => {
  const { acme, post } = await setUp();
  for (const code of ['isi_bolt_wrong', `isi_bolt_1_${'S'.repeat(43)}`, 'S'.repeat(5_000)]) {
    const { status, text, body } = await post(acme, '/v1/invitations/redeem', { code, consumer: 'rome' });
    expect([status, Problem.parse(body).code]).toEqual([404, 'invitation_unknown']);
    expect(text).not.toContain('SSSS');
    expect(text).not.toContain('isi_');
  }
});

test('a request repeated under its Idempotency-Key is made once, and a code comes again for the same credentials', async () => {
  const { acme, bolt, post, get } = await setUp();
  expect((await post(bolt, '/v1/directory', { cluster: 'milan', region: 'eu-1' })).status).toBe(201);
  expect((await post(bolt, '/v1/directory', { cluster: 'milan', labels: { tier: 'gold' } })).status).toBe(200);
  const wanted = { consumer: 'rome', providerTenant: 'bolt', provider: 'milan', reason: 'load' };
  const key = { 'idempotency-key': 'one' };
  const [first, second] = [
    await post(acme, '/v1/requests', wanted, key),
    await post(acme, '/v1/requests', wanted, key),
  ];
  expect([first.status, second.status, second.headers['idempotency-replayed']]).toEqual([201, 201, 'true']);
  expect((await get(bolt, '/v1/requests?state=pending')).body.items).toHaveLength(1);
  const { id } = PeeringRequest.parse(first.body);
  expect((await post(acme, `/v1/requests/${id}/approve`, {})).status).toBe(404);
  const approved = await post(bolt, `/v1/requests/${id}/approve`, { reason: 'welcome' });
  expect(approved.body).toMatchObject({ state: 'approved', answer: 'welcome' });
  expect((await post(bolt, `/v1/requests/${id}/reject`, {})).body.code).toBe('request_closed');
  const invited = await post(bolt, '/v1/invitations', { cluster: 'milan' }, key);
  expect(invited.status).toBe(201);
  expect((await post(bolt, '/v1/invitations', { cluster: 'milan' }, key)).body).toEqual(invited.body);
});

test.each([
  { path: '/v1/invitations', body: { cluster: 'milan', uses: 0 }, field: 'uses' },
  { path: '/v1/invitations', body: { cluster: 'milan', colour: 'red' }, field: 'colour' },
  { path: '/v1/invitations', body: { cluster: 'milan', limits: { cpu: 'lots' } }, field: 'limits.cpu' },
  { path: '/v1/requests', body: { consumer: 'rome', provider: 'milan' }, field: 'providerTenant' },
  { path: '/v1/approval-rules', body: { name: 'x', tenants: [] }, field: 'tenants' },
  { path: '/v1/directory', body: { cluster: 'milan', labels: { tier: 'a b' } }, field: 'labels.tier' },
  { path: '/v1/directory', body: { cluster: 'milan', region: 'a b' }, field: 'region' },
])('POST $path with a wrong $field is a problem that names it', async ({ path, body, field }) => {
  const { bolt, post } = await setUp();
  const refused = await post(bolt, path, body);
  expect(refused.status).toBe(422);
  expect(JSON.stringify(refused.body.errors)).toContain(field);
});

test('lists go on by cursor and filter by what the query says', async () => {
  const { bolt, acme, post, get } = await setUp();
  for (let i = 0; i < 5; i += 1) await post(bolt, '/v1/invitations', { cluster: 'milan', note: `n${i}` });
  const first = await get(bolt, '/v1/invitations?limit=3');
  const second = await get(bolt, `/v1/invitations?limit=3&cursor=${first.body.cursor}`);
  expect([...first.body.items, ...second.body.items].map(({ note }) => note).sort()).toEqual([
    'n0',
    'n1',
    'n2',
    'n3',
    'n4',
  ]);
  await post(bolt, '/v1/directory', { cluster: 'milan', labels: { tier: 'gold', 'x.y/z': '1' } });
  expect((await get(acme, '/v1/directory?labels=tier=gold,x.y/z=1')).body.items).toHaveLength(1);
  expect((await get(acme, '/v1/directory?labels=tier=silver')).body.items).toHaveLength(0);
  expect((await get(acme, '/v1/directory?labels=nonsense')).status).toBe(422);
  expect((await get(acme, '/v1/directory/bolt/milan')).body.cluster).toBe('milan');
});
