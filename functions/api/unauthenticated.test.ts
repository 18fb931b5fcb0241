import { expect, test } from 'vitest';
import { newAgentKeys, signRequest } from '#control/testing/agent-keys.ts';
import { worldlyFacts } from '#control/testing/two-tenants.ts';
import { type ApiFixture, apiUrl, createApiFixture } from '#functions/testing/api-fixture.ts';

async function join(clusters: ApiFixture, key: string, tenant: string, cluster: string): Promise<void> {
  const { body: made } = await clusters.call({ method: 'POST', path: '/v1/join-tokens', key, body: { cluster } });
  const { secret } = JSON.parse(Buffer.from(made.token.slice('isthmus1.'.length), 'base64url').toString()) as {
    secret: string;
  };
  const keys = newAgentKeys();
  const body = { clusterId: cluster, token: secret, publicKey: keys.publicKey, facts: worldlyFacts };
  const request = {
    keys,
    tenant,
    clusterId: cluster,
    audience: apiUrl,
    now: clusters.clock.now(),
    path: '/v1/agent/enroll',
  };
  const { authorization = '' } = await signRequest({ ...request, body: JSON.stringify(body) });
  const answer = await clusters.call({ method: 'POST', path: request.path, body, headers: { authorization } });
  expect(answer.status).toBe(200);
}

test('what two tenants share is to a third one as if it had never been', async () => {
  const clusters = await createApiFixture();
  const keys: Record<string, string> = {};
  for (const [tenant, cluster] of [
    ['acme', 'rome'],
    ['bolt', 'milan'],
    ['corp', 'turin'],
  ] as const) {
    keys[tenant] = await clusters.tenant(tenant);
    await join(clusters, keys[tenant], tenant, cluster);
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
