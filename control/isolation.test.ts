import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codeOf } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import type { ClusterFacts, ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import { drawn } from '#test/harness/cases.ts';
import type { AgentCaller, Caller } from './access/caller.ts';
import { createMemoryStore } from './adapters/memory/memory-store.ts';
import type { Store } from './ports/store.ts';
import { adminOf, type BrokerClusters, createBrokerClusters, origin } from './testing/broker-clusters.ts';
import { partitionOfTenant } from './testing/due-items.ts';
import { openFacts } from './testing/simulated-cluster.ts';

const tenants = ['acme', 'bolt'] as const;
type Tenant = (typeof tenants)[number];
/** The same names in both tenants: nothing but the tenant keeps them apart. */
const names = ['rome', 'milan', 'turin'] as const;

/** Fails at the first key outside the tenant that is being served. */
function guarded(store: Store, serving: () => Tenant | undefined): Store {
  const mine = (pk: string): void => {
    const tenant = serving();
    if (tenant === undefined || pk.startsWith(`t/${tenant}/`) || pk === `t/${tenant}`) return;
    throw new Error(`${tenant} reached ${pk}`);
  };
  return {
    ...store,
    get(pk, sk, signal) {
      mine(partitionOfTenant(pk, sk));
      return store.get(pk, sk, signal);
    },
    getMany(many, signal) {
      for (const { pk, sk } of many.keys) mine(partitionOfTenant(pk, sk));
      return store.getMany(many, signal);
    },
    query(query, signal) {
      mine(query.partition);
      return store.query(query, signal);
    },
    async transact(ops, events, signal) {
      for (const op of ops) mine(partitionOfTenant(op.pk, op.sk));
      for (const event of events ?? []) mine(`t/${event.stream}`);
      return store.transact(ops, events, signal);
    },
    outbox(after, limit, stream, signal) {
      mine(`t/${stream}`);
      return store.outbox(after, limit, stream, signal);
    },
  };
}

const index = fc.nat(1_000);
const actor = {
  tenant: fc.constantFrom(...tenants),
  name: fc.constantFrom(...names),
  other: fc.constantFrom(...names),
  pick: index,
};
const operation = fc.record({
  ...actor,
  op: fc.constantFrom(
    'request',
    'request',
    'get',
    'list',
    'find',
    'unpeer',
    'cluster',
    'clusters',
    'audit',
    'events',
    'keys',
    'createKey',
    'revokeKey',
    'rotateKey',
    'authenticate',
    'token',
    'desired',
    'desired',
    'observe',
    'observe',
    'lost',
    'once',
    'remove',
    'rejoin',
  ),
});
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

interface Known {
  /** Ids and secrets of both tenants: everybody may try everything. */
  readonly peerings: { readonly id: string; readonly tenant: Tenant }[];
  readonly keys: { readonly id: string; readonly secret: string; readonly tenant: Tenant }[];
}

/** Facts that carry the name of their tenant, so that a leak shows in any answer. */
const factsOf = (tenant: Tenant): ClusterFacts => ({ ...openFacts, apiServerUrl: `https://${tenant}.example:6443` });
const agentOf = (tenant: Tenant, clusterId: string): AgentCaller => ({
  ...origin,
  tenant,
  clusterId,
  principal: `cluster/${clusterId}`,
});
const pickOf = <T>(list: readonly T[], pick: number): T | undefined => list[pick % Math.max(1, list.length)];

async function perform(
  clusters: BrokerClusters,
  known: Known,
  { op, tenant, name, other, pick }: Operation,
): Promise<unknown> {
  const { control } = clusters;
  const caller: Caller = adminOf(tenant);
  const agent = agentOf(tenant, name);
  const peering = pickOf(known.peerings, pick)?.id ?? 'pe_none';
  const apiKey = pickOf(known.keys, pick);
  switch (op) {
    case 'request': {
      const made = await control.peerings.request(caller, {
        consumer: name,
        provider: other,
        resources: { [`${tenant}.example/unit`]: '1' },
      });
      if (made.created) known.peerings.push({ id: made.peering.id, tenant });
      return made;
    }
    case 'get':
      return control.peerings.get(caller, peering);
    case 'list':
      return control.peerings.list(caller, { includeGone: true, limit: 20, ...(pick % 2 ? { cluster: name } : {}) });
    case 'find':
      return control.peerings.find(caller, name, other);
    case 'unpeer':
      return control.peerings.unpeer(caller, peering);
    case 'cluster':
      return control.clusters.get(caller, name);
    case 'clusters':
      return control.clusters.list(caller, { includeLeft: true });
    case 'audit':
      return control.audit.list(caller, { limit: 20 });
    case 'events':
      return control.events.list(caller, { limit: 20 });
    case 'keys':
      return control.tenants.listKeys(caller, { limit: 20 });
    case 'createKey': {
      const issued = await control.tenants.createKey(caller, { name: `of ${tenant}`, role: 'operator' });
      known.keys.push({ id: issued.key.id, secret: issued.secret, tenant });
      return issued;
    }
    case 'revokeKey':
      return control.tenants.revokeKey(caller, apiKey?.id ?? 'ak_none');
    case 'rotateKey': {
      const issued = await control.tenants.rotateKey(caller, apiKey?.id ?? 'ak_none');
      known.keys.push({ id: issued.key.id, secret: issued.secret, tenant });
      return issued;
    }
    case 'authenticate': {
      const found = await control.tenants.authenticate(apiKey?.secret ?? 'isk_none', origin);
      expect(found.tenant).toBe(apiKey?.tenant);
      return undefined;
    }
    case 'token':
      return control.clusters.createJoinToken(caller, name);
    case 'desired':
      return control.exchange.desired(agent, pick % 5);
    case 'observe': {
      const set: ObservedSet = {
        peering,
        role: pick % 2 ? 'consumer' : 'provider',
        appliedRevision: 9_999,
        objects: [],
        refusals: [],
      };
      const facts = { ...factsOf(tenant), nodes: pick };
      const ask = {
        name: 'gitops',
        uid: `${tenant}-${name}`,
        generation: 1,
        provider: other,
        resources: {},
        class: 'default',
        deleting: pick % 3 === 0,
      };
      return control.exchange.observe(agent, {
        sets: [set],
        facts,
        ...(pick % 4 === 0 ? { asks: pick % 8 === 0 ? [ask] : [] } : {}),
      });
    }
    case 'lost':
      return control.clusters.lost(agent);
    case 'once':
      return control.idempotency.once(
        { ...caller, principal: 'api-key/same' },
        { key: `key-${pick % 7}`, fingerprint: 'same' },
        async () => ({ status: 200, body: { of: tenant } }),
      );
    case 'remove':
      return pick % 10 === 0 ? control.clusters.remove(caller, name, { force: true }) : undefined;
    case 'rejoin':
      return pick % 5 === 0 ? void (await clusters.join(name, { tenant, facts: factsOf(tenant) })) : undefined;
  }
}

const refusals = new Set([
  'not_found',
  'cluster_unknown',
  'peer_self',
  'in_use',
  'unauthenticated',
  'already_exists',
  'in_progress',
  'policy_refused',
  'owned_by_object',
]);

const runs = drawn(20, { numRuns: 6, seed: 1 });
/** In each run. */
const operations = 500;

test(`two tenants see and touch nothing of each other in ${runs.numRuns * operations} generated operations`, async () => {
  let total = 0;
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: operations, maxLength: operations }), async (all) => {
      const clock = new ManualClock();
      let serving: Tenant | undefined;
      const store = guarded(createMemoryStore({ clock }), () => serving);
      const clusters = createBrokerClusters({ clock, deps: { store } });
      for (const tenant of tenants)
        for (const name of names) await clusters.join(name, { tenant, facts: factsOf(tenant) });
      const known: Known = { peerings: [], keys: [] };
      for (const next of all) {
        total += 1;
        const foreign: Tenant = next.tenant === 'acme' ? 'bolt' : 'acme';
        // A secret leads to the tenant that it belongs to, for every caller; joining bootstraps, which asks for the tenant's name.
        serving = next.op === 'authenticate' || next.op === 'rejoin' ? undefined : next.tenant;
        const text = await perform(clusters, known, next).then(
          (answer) => JSON.stringify(answer) ?? '',
          (error: unknown) => {
            if (!refusals.has(codeOf(error) ?? '')) throw error;
            refused += 1;
            return '';
          },
        );
        expect(text).not.toContain(foreign);
        for (const { id, tenant } of [...known.peerings, ...known.keys])
          if (tenant === foreign) expect(text).not.toContain(id);
        clock.advance(500);
      }
      serving = undefined;
      await clusters.control.peerings.sweep();
    }),
    runs,
  );
  expect(total).toBeGreaterThanOrEqual(runs.numRuns * operations);
  expect(refused).toBeLessThan(total * 0.6);
}, 120_000);

test('another tenant’s peering, key and cluster are not found, and unharmed', async () => {
  const clusters = createBrokerClusters();
  for (const name of ['rome', 'milan']) await clusters.join(name, { tenant: 'acme' });
  await clusters.join('turin', { tenant: 'bolt' });
  const { control } = clusters;
  const acme = adminOf('acme');
  const bolt = adminOf('bolt');
  const { peering } = await control.peerings.request(acme, { consumer: 'rome', provider: 'milan', resources: {} });
  const { key } = await control.tenants.createKey(acme, { name: 'ci', role: 'operator' });
  const missing = { code: 'not_found' };
  await expect(control.peerings.get(bolt, peering.id)).rejects.toMatchObject(missing);
  await expect(control.peerings.unpeer(bolt, peering.id)).rejects.toMatchObject(missing);
  await expect(control.tenants.revokeKey(bolt, key.id)).rejects.toMatchObject(missing);
  await expect(control.clusters.get(bolt, 'rome')).rejects.toMatchObject(missing);
  await expect(control.clusters.remove(bolt, 'rome', { force: true })).rejects.toMatchObject(missing);
  await expect(
    control.peerings.request(bolt, { consumer: 'turin', provider: 'milan', resources: {} }),
  ).rejects.toMatchObject({ code: 'cluster_unknown' });
  expect((await control.peerings.get(acme, peering.id)).unpeerRequestedAt).toBeUndefined();
});
