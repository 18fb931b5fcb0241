/** Three tenants, everything that tenants can do with each other, and three nets: the keys that are touched, the words that are heard, the ids that are answered. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codeOf } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { drawn } from '#test/harness/cases.ts';
import { createMemoryStore } from './adapters/memory/memory-store.ts';
import type { Store } from './ports/store.ts';
import { createBrokerClusters } from './testing/broker-clusters.ts';
import {
  callerOf,
  clustersOf,
  innerMark,
  inwardOps,
  isRefusal,
  type Known,
  markedFacts,
  type Operation,
  operation,
  perform,
  placeOf,
  type Tenant,
  tenants,
} from './testing/cross-tenant-operations.ts';
import { partitionOfTenant } from './testing/due-items.ts';

interface Serving {
  readonly tenant: Tenant;
  readonly op: Operation['op'];
}

const inward: ReadonlySet<string> = new Set(inwardOps);
/** Everything of another tenant that may be touched by exact key, never by a query. docs/cross-tenant.md says what for. */
const foreign: readonly { readonly pk: RegExp; readonly sk: RegExp }[] = [
  { pk: /^$/, sk: /^tenant$/ },
  { pk: /^\/with\//, sk: /^peering\// },
  { pk: /^\/peerings$/, sk: /^pe_/ },
  { pk: /^\/clusters$/, sk: /^/ },
  { pk: /^\/cluster\/[^/]+$/, sk: /^(observed\/pe_.*|desired\/pe_.*|peering\/pe_.*|peer\/.+)$/ },
  { pk: /^\/heard$/, sk: /^[^!]+!(seen|revision)$/ },
  { pk: /^\/(looks|due|audit|audit-by|pairs)$/, sk: /^/ },
  { pk: /^\/counts$/, sk: /^peerings$/ },
  { pk: /^\/labels$/, sk: /^peering\// },
  { pk: /^\/(inbox|sent-requests)$/, sk: /^rq_/ },
  { pk: /^\/open-requests\//, sk: /\// },
  { pk: /^\/invitations$/, sk: /^iv_/ },
  { pk: /^\/approval-rules$/, sk: /^all$/ },
];
const foreignEvents = /^(peering\.(?!labels-)|request\.)|^invitation\.redeemed$/;

function guarded(store: Store, serving: () => Serving | undefined, broken: string[]): Store {
  const check = (at: string, sk: string): void => {
    const now = serving();
    const pk = partitionOfTenant(at, sk);
    if (!now || pk.startsWith('system/directory/') || pk === `t/${now.tenant}` || pk.startsWith(`t/${now.tenant}/`))
      return;
    const rest = pk.replace(/^t\/[^/]+/, '');
    if (inward.has(now.op) || !foreign.some((one) => one.pk.test(rest) && one.sk.test(sk)))
      broken.push(`${now.op} of ${now.tenant} reached ${pk} ${sk}`);
  };
  return {
    ...store,
    get(pk, sk, signal) {
      // A code that is none asks for the tenant that it names.
      if (!pk.startsWith('t/none/')) check(pk, sk);
      return store.get(pk, sk, signal);
    },
    getMany(many, signal) {
      for (const { pk, sk } of many.keys) check(pk, sk);
      return store.getMany(many, signal);
    },
    query(query, signal) {
      const now = serving();
      const own = now && (query.partition === `t/${now.tenant}` || query.partition.startsWith(`t/${now.tenant}/`));
      if (now && !own && !query.partition.startsWith('system/directory/'))
        broken.push(`${now.op} of ${now.tenant} queried ${query.partition}`);
      return store.query(query, signal);
    },
    async transact(ops, events, signal) {
      const now = serving();
      for (const { pk, sk } of ops) check(pk, sk);
      for (const { stream, type } of events ?? [])
        if (now && stream !== now.tenant && !foreignEvents.test(type)) broken.push(`${type} went to ${stream}`);
      return store.transact(ops, events, signal);
    },
  };
}

const runs = drawn(20, { numRuns: 6, seed: 1 });
/** In each run. */
const operations = 400;

test(`no tenant hears, finds or touches of another what is not on the list, in ${runs.numRuns * operations} generated operations`, async () => {
  const totals = { performed: 0, refused: 0, shared: 0, ready: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: operations, maxLength: operations }), async (all) => {
      const clock = new ManualClock();
      const broken: string[] = [];
      let serving: Serving | undefined;
      const store = guarded(createMemoryStore({ clock }), () => serving, broken);
      const clusters = createBrokerClusters({ clock, deps: { store } });
      const known: Known = { codes: [], ids: new Map(), played: new Map() };
      for (const tenant of tenants)
        for (const name of clustersOf[tenant])
          known.played.set(placeOf(tenant, name), await clusters.join(name, { tenant, facts: markedFacts(tenant) }));
      for (const what of all) {
        totals.performed += 1;
        serving = { tenant: what.tenant, op: what.op };
        const answer = await perform(clusters, known, what).then(
          (value) => JSON.stringify(value) ?? '',
          (error: unknown) => {
            if (!isRefusal(error)) throw error;
            totals.refused += 1;
            return `${(error as Error).message} ${JSON.stringify((error as { detail?: unknown }).detail)}`;
          },
        );
        serving = undefined;
        for (const other of tenants)
          if (other !== what.tenant && answer.includes(innerMark(other)))
            broken.push(`${what.op} of ${what.tenant} heard of ${other}: ${answer}`);
        for (const [id, parties] of known.ids) {
          const asked = answer.startsWith('there is no');
          if (!asked && !parties.has(what.tenant) && answer.includes(id))
            broken.push(`${what.op} of ${what.tenant} heard of ${id}`);
        }
        expect(broken).toEqual([]);
        clock.advance(200);
      }
      await strangersFindNothing(clusters, known);
      totals.shared += [...known.ids.values()].filter((parties) => parties.size === 2).length;
      for (const tenant of tenants)
        for (const { phaseSince } of (await clusters.control.peerings.list(callerOf(tenant), { includeGone: true }))
          .items)
          if (phaseSince.Ready !== undefined) totals.ready += 1;
    }),
    runs,
  );
  expect(totals.performed).toBeGreaterThanOrEqual(runs.numRuns * operations);
  // It was no test of refusals alone.
  expect(totals.refused).toBeLessThan(totals.performed * 0.7);
  expect(totals.shared).toBeGreaterThan(7 * runs.numRuns);
}, 120_000);

/** Every id, tried by every tenant that it is not of. */
async function strangersFindNothing({ control }: ReturnType<typeof createBrokerClusters>, known: Known): Promise<void> {
  for (const [id, parties] of known.ids) {
    for (const tenant of tenants) {
      if (parties.has(tenant)) continue;
      const caller = callerOf(tenant);
      const tries = {
        pe_: [
          () => control.peerings.get(caller, id),
          () => control.peerings.unpeer(caller, id),
          () => control.peerings.label(caller, id, { labels: {} }),
        ],
        iv_: [() => control.invitations.get(caller, id), () => control.invitations.revoke(caller, id)],
        rq_: [
          () => control.requests.get(caller, id),
          () => control.requests.approve(caller, id),
          () => control.requests.reject(caller, id),
          () => control.requests.withdraw(caller, id),
        ],
        ar_: [() => control.approvalRules.delete(caller, id)],
      }[id.slice(0, 3)];
      for (const attempt of tries ?? []) {
        const code = await attempt().then(
          () => 'it worked',
          (error: unknown) => codeOf(error),
        );
        expect(code, `${tenant} and ${id}`).toBe('not_found');
      }
    }
  }
}
