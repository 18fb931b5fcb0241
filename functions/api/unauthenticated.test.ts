import { expect, test } from 'vitest';
import { worldlyFacts } from '#control/testing/two-tenants.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';

test('what two tenants share is to a third one as if it had never been', async () => {
  const clusters = await createApiFixture();
  const keys: Record<string, string> = {};
  for (const [tenant, cluster] of [
    ['acme', 'rome'],
    ['bolt', 'milan'],
    ['corp', 'turin'],
  ] as const) {
    keys[tenant] = await clusters.tenant(tenant);
    expect((await clusters.join({ tenant, key: keys[tenant], cluster, facts: worldlyFacts })).status).toBe(200);
  }
  const ask = (tenant: string, method: string, path: string, body?: unknown) =>
    clusters.call({ method, path, key: keys[tenant], ...(body !== undefined && { body }) });

  const published = await ask('bolt', 'POST', '/v1/directory', { cluster: 'milan' });
  expect(published.status).toBe(201);
  const requested = await ask('acme', 'POST', '/v1/requests', {
    consumer: 'rome',
    providerTenant: 'bolt',
    provider: 'milan',
  });
  const invited = await ask('bolt', 'POST', '/v1/invitations', { cluster: 'milan', limits: { cpu: '1' } });
  const redeemed = await ask('acme', 'POST', '/v1/invitations/redeem', { code: invited.body.code, consumer: 'rome' });
  expect([requested.status, invited.status, redeemed.status]).toEqual([201, 201, 202]);

  const ids = { request: requested.body.id, invitation: invited.body.invitation.id, peering: redeemed.body.id };
  const never = (id: string): string => `${id.slice(0, 3)}0000000000${id.slice(13)}`;
  const calls: [string, string, keyof typeof ids, object?][] = [
    ['GET', '/v1/requests/{}', 'request'],
    ['DELETE', '/v1/requests/{}', 'request'],
    ['POST', '/v1/requests/{}/approve', 'request', {}],
    ['POST', '/v1/requests/{}/reject', 'request', {}],
    ['GET', '/v1/invitations/{}', 'invitation'],
    ['DELETE', '/v1/invitations/{}', 'invitation'],
    ['GET', '/v1/peerings/{}', 'peering'],
    ['DELETE', '/v1/peerings/{}', 'peering'],
  ];
  for (const [method, path, what, body] of calls) {
    const id = ids[what];
    const foreign = await ask('corp', method, path.replace('{}', id), body);
    const none = await ask('corp', method, path.replace('{}', never(id)), body);
    expect([foreign.status, foreign.body.code], `${method} ${path}`).toEqual([404, none.body.code]);
    const plain = (text: string, mine: string) => text.replaceAll(mine, '*').replace(/"requestId":"\w+"/, '');
    expect(plain(foreign.text, id)).toBe(plain(none.text, never(id)));
  }
  for (const path of [
    '/v1/requests',
    '/v1/requests?direction=sent',
    '/v1/peerings',
    '/v1/invitations',
    '/v1/events',
    '/v1/audit',
  ]) {
    const { text } = await ask('corp', 'GET', path);
    for (const foreign of ['acme', 'bolt', ...Object.values(ids)]) expect(text, path).not.toContain(foreign);
  }
  expect((await ask('bolt', 'GET', `/v1/requests/${ids.request}`)).status).toBe(200);
});
