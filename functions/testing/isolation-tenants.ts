/** The tenants of an isolation run: what marks each of them, its keys, its clusters and how they join. */
import { type AgentKeys, signRequest } from '#control/testing/agent-keys.ts';
import { openFacts } from '#control/testing/simulated-cluster.ts';
import { type ApiFixture, apiUrl } from './api-fixture.ts';

export interface Tenant {
  readonly name: string;
  /** In every text that it writes, and in nothing that others send. */
  readonly mark: string;
  /** The clusters of all tenants have these names, but for the last. */
  readonly clusters: readonly string[];
  readonly keys: Partial<Record<'viewer' | 'operator' | 'admin', string>>;
  /** Ids of others that it sent: it may find them in its own audit log. */
  readonly sent: Set<string>;
}

export async function renewKeys(fixture: ApiFixture, tenant: Tenant): Promise<void> {
  const self = { from: 'test', requestId: 'test', tenant: tenant.name, principal: 'system', role: 'admin' } as const;
  for (const role of ['viewer', 'operator', 'admin'] as const) {
    const { secret } = await fixture.control.tenants.createKey(self, { name: `${tenant.mark} ${role}`, role });
    tenant.keys[role] = secret;
  }
}

export async function enroll(fixture: ApiFixture, tenant: Tenant, clusterId: string, keys: AgentKeys): Promise<void> {
  const self = { from: 'test', requestId: 'test', tenant: tenant.name, principal: 'system', role: 'admin' } as const;
  const known = await fixture.control.clusters.get(self, clusterId).catch(() => undefined);
  if (known?.state === 'joined') return;
  const { token } = await fixture.control.clusters.createJoinToken(self, clusterId);
  const { secret } = JSON.parse(Buffer.from(token.slice('isthmus1.'.length), 'base64url').toString()) as {
    secret: string;
  };
  const facts = { ...openFacts, apiServerUrl: `https://${tenant.mark}.example:6443` };
  const body = { clusterId, token: secret, publicKey: keys.publicKey, facts };
  const request = {
    keys,
    tenant: tenant.name,
    clusterId,
    audience: apiUrl,
    now: fixture.clock.now(),
    path: '/v1/agent/enroll',
    body: JSON.stringify(body),
  };
  await fixture.control.clusters.enroll(body, await signRequest(request));
}
