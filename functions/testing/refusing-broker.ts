/** A broker with two tenants and their clusters, and short names for what its tests ask of it. */
import { selfHostedLimits } from '#control/limits/limits.ts';
import { newAgentKeys } from '#control/testing/agent-keys.ts';
import { openFacts } from '#control/testing/simulated-cluster.ts';
import { worldlyFacts } from '#control/testing/two-tenants.ts';
import { type ApiAnswer, type ApiFixtureOptions, createApiFixture } from '#functions/testing/api-fixture.ts';

export const agentKeys = newAgentKeys();

/** acme has rome and siena, bolt has milan; all of them peer with each other and with other tenants. */
export async function refusingBroker(options: ApiFixtureOptions = {}) {
  const fixture = await createApiFixture({ limits: selfHostedLimits, ...options });
  const keys = {
    acme: await fixture.tenant('acme'),
    bolt: await fixture.tenant('bolt'),
    operator: fixture.operatorKey,
  };
  type By = keyof typeof keys;
  const send =
    (method: string) =>
    (by: By, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<ApiAnswer> =>
      fixture.call({ method, path, key: keys[by], headers, ...(body !== undefined && { body }) });
  const joinAs = (tenant: 'acme' | 'bolt', cluster: string, facts = worldlyFacts) =>
    fixture.join({ tenant, key: keys[tenant], cluster, facts, keys: agentKeys });
  for (const cluster of ['rome', 'siena']) await joinAs('acme', cluster);
  await joinAs('bolt', 'milan');
  const [get, post, patch, remove] = [send('GET'), send('POST'), send('PATCH'), send('DELETE')];
  return {
    fixture,
    keys,
    get,
    post,
    patch,
    remove,
    joinAs,
    limit: (tenant: string, limits: object) => patch('operator', `/v1/tenants/${tenant}`, { limits }),
    peer: (body: object = {}) => post('acme', '/v1/peerings', { consumer: 'rome', provider: 'siena', ...body }),
    invite: async (body: object = {}) =>
      (await post('bolt', '/v1/invitations', { cluster: 'milan', uses: 5, ...body })).body,
    redeem: (code: string, body: object = {}) =>
      post('acme', '/v1/invitations/redeem', { code, consumer: 'rome', ...body }),
    publish: () => post('bolt', '/v1/directory', { cluster: 'milan' }),
    ask: (body: object = {}) =>
      post('acme', '/v1/requests', { consumer: 'rome', providerTenant: 'bolt', provider: 'milan', ...body }),
    joinToken: async (cluster: string) => {
      const { body } = await post('acme', '/v1/join-tokens', { cluster });
      return String(JSON.parse(Buffer.from(body.token.slice('isthmus1.'.length), 'base64url').toString()).secret);
    },
    enroll: (cluster: string, token: string, keysOfIt = agentKeys) =>
      fixture.signed(
        { tenant: 'acme', cluster, keys: keysOfIt },
        {
          method: 'POST',
          path: '/v1/agent/enroll',
          body: { clusterId: cluster, token, publicKey: keysOfIt.publicKey, facts: openFacts },
        },
      ),
    report: (body: object) =>
      fixture.signed(
        { tenant: 'acme', cluster: 'rome', keys: agentKeys },
        { method: 'POST', path: '/v1/agent/observed', body: { sets: [], ...body } },
      ),
  };
}
export type RefusingBroker = Awaited<ReturnType<typeof refusingBroker>>;
