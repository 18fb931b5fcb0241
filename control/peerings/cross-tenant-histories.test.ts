/** Any history of two tenants, with processes that die between any two writes and events that are lost, doubled and late. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { drawn } from '#test/harness/cases.ts';
import { createLocalBus, type LocalBus } from '../adapters/local-bus/local-bus.ts';
import { createMemoryStore } from '../adapters/memory/memory-store.ts';
import type { InvitationRecord } from '../model/invitation.ts';
import type { PeeringRecord } from '../model/peering-records.ts';
import type { RequestRecord } from '../requests/request.ts';
import { partition } from '../store/keys.ts';
import { type BrokerClusters, createBrokerClusters } from '../testing/broker-clusters.ts';
import {
  clustersOf,
  isRefusal,
  type Known,
  markedFacts,
  type Operation,
  perform,
  placeOf,
} from '../testing/cross-tenant-operations.ts';
import { countedItems, countersOf, placesOf, wantedPlaces } from '../testing/exact-counts.ts';
import { Crash, createFaultyStore, type FaultyStore } from '../testing/faulty-store.ts';
import { roles } from './core/roles.ts';
import { copyFor } from './cross-tenant/copies.ts';

const two = ['acme', 'bolt'] as const;
const step = fc.record({
  what: fc.record({
    op: fc.oneof(
      {
        weight: 5,
        arbitrary: fc.constantFrom<Operation['op']>(
          'invite',
          'redeem',
          'redeem',
          'ask',
          'approve',
          'publish',
          'policy',
        ),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom<Operation['op']>(
          'revoke',
          'reject',
          'withdraw',
          'unpeer',
          'change',
          'rule',
          'unpublish',
        ),
      },
      { weight: 2, arbitrary: fc.constant<Operation['op']>('unpeer') },
      { weight: 5, arbitrary: fc.constantFrom<Operation['op']>('pull', 'report') },
    ),
    tenant: fc.constantFrom(...two),
    other: fc.constantFrom(...two),
    which: fc.nat(1),
    pick: fc.nat(1_000),
  }),
  crash: fc.option(
    fc.record({ in: fc.integer({ min: 1, max: 3 }), when: fc.constantFrom('before' as const, 'after' as const) }),
    { nil: undefined, freq: 3 },
  ),
  after: fc.constantFrom('nothing', 'nothing', 'advance', 'sweep', 'deliver', 'restart', 'dies', 'lives'),
});
const history = fc.record({
  steps: fc.array(step, { minLength: 60, maxLength: 120, size: 'max' }),
  seed: fc.integer(),
});

interface Setting {
  readonly world: BrokerClusters;
  readonly known: Known;
  readonly bus: LocalBus;
  readonly troubled: FaultyStore;
}

/** mulberry32: fair, unlike what a generator of edge cases yields. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

async function setUp(seed: number): Promise<Setting> {
  const clock = new ManualClock();
  const faulty = createFaultyStore();
  const store = faulty.wrap(createMemoryStore({ clock }));
  const mischief = { random: seededRandom(seed), shuffle: 0.5, duplicate: 0.3, delay: 0.3, delayMs: 20_000, drop: 0.2 };
  const bus = createLocalBus({ store, clock, log: silentLog, mischief, maxAttempts: 50 });
  const clusters = createBrokerClusters({ clock, deps: { store, bus } });
  const known: Known = { codes: [], ids: new Map(), played: new Map() };
  for (const tenant of two)
    for (const name of clustersOf[tenant])
      known.played.set(placeOf(tenant, name), await clusters.join(name, { tenant, facts: markedFacts(tenant) }));
  return { world: clusters, known, bus, troubled: faulty };
}

async function survive(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Crash) && !isRefusal(error)) throw error;
  }
}

const signal = new AbortController().signal;

async function settle({ world: clusters, known, bus, troubled: faulty }: Setting): Promise<void> {
  faulty.fault.in = 0;
  for (const [place, cluster] of known.played) {
    cluster.alive = true;
    cluster.facts = markedFacts(place.startsWith('acme') ? 'acme' : 'bolt');
  }
  for (let round = 0; round < 45; round += 1) {
    for (const cluster of known.played.values()) {
      await cluster.pull();
      cluster.work((id) => clusters.clusters.get(id));
      await cluster.report();
    }
    await bus.deliverDue(signal);
    clusters.clock.advance(3_000);
    await clusters.control.peerings.sweep();
  }
}

const all = async <T>({ world: clusters }: Setting, pk: string): Promise<readonly T[]> =>
  (await clusters.store.query<T>({ partition: pk, limit: 200 })).items.map(({ value }) => value);

async function sharedPeerings(setting: Setting): Promise<readonly PeeringRecord[]> {
  const pairs = [
    partition.shared('acme', 'bolt'),
    partition.shared('bolt', 'acme'),
    partition.shared('acme', 'acme'),
    partition.shared('bolt', 'bolt'),
  ];
  return (await Promise.all(pairs.map((pk) => all<PeeringRecord>(setting, pk)))).flat();
}

/** Holds at every moment: nothing that one tenant agreed to exists at one of the two only. */
async function bothSidesAgree(setting: Setting): Promise<void> {
  const peerings = await sharedPeerings(setting);
  for (const tenant of two) {
    const { store } = setting.world;
    expect(await countersOf(store, tenant)).toEqual(await countedItems(store, tenant));
    expect(await placesOf(store, tenant)).toEqual(await wantedPlaces(store, tenant));
    const copies = (await all<PeeringRecord>(setting, partition.peerings(tenant))).filter(({ spec }) => spec.across);
    const mine = peerings.filter(({ spec }) => spec.across?.consumer === tenant || spec.across?.provider === tenant);
    expect(copies.map(({ spec }) => spec.id).sort()).toEqual(mine.map(({ spec }) => spec.id).sort());
    for (const role of roles)
      for (const record of mine)
        if (record.spec.across?.[role] === tenant)
          expect(copies.find(({ spec }) => spec.id === record.spec.id)).toEqual(copyFor(record, role));
    for (const { id, uses, redemptions } of await all<InvitationRecord>(setting, partition.invitations(tenant))) {
      expect(redemptions.length).toBeLessThanOrEqual(uses);
      const made = peerings.filter(({ spec }) => spec.across?.grant.id === id).map(({ spec }) => spec.id);
      expect(redemptions.map(({ peering }) => peering)).toEqual(expect.arrayContaining(made));
    }
    const others = two.find((name) => name !== tenant) ?? tenant;
    const sent = await all<RequestRecord>(setting, partition.sentRequests(others));
    for (const request of await all<RequestRecord>(setting, partition.inbox(tenant))) {
      const copy = sent.find(({ id }) => id === request.id);
      expect([copy?.state, copy?.peering]).toEqual([request.state, request.peering]);
      expect(request.peering !== undefined).toBe(request.state === 'approved');
    }
  }
}

/** No cluster has two living peers of one name, and at most one living peering with each in each direction. */
async function namesAreUnique(setting: Setting): Promise<void> {
  const seen = new Set<string>();
  for (const { spec, state } of await sharedPeerings(setting)) {
    if (state.removal?.finishedAt !== undefined) continue;
    const pair = `${spec.across?.consumer}/${spec.consumer} ${spec.across?.provider}/${spec.provider}`;
    expect(seen.has(pair)).toBe(false);
    seen.add(pair);
  }
}

test('ends where it should at both tenants, with nothing left behind and nothing more to do', async () => {
  const met = { ready: 0, gone: 0 };
  await fc.assert(
    fc.asyncProperty(history, async ({ steps, seed }) => {
      const setting = await setUp(seed);
      const { world: clusters, known, bus, troubled: faulty } = setting;
      for (const { what, crash, after } of steps) {
        Object.assign(faulty.fault, crash ?? { in: 0 });
        await survive(() => perform(clusters, known, what));
        faulty.fault.in = 0;
        const cluster = known.played.get(placeOf(what.tenant, clustersOf[what.tenant][what.which] ?? ''));
        if (after === 'advance') clusters.clock.advance(what.pick * 20);
        if (after === 'sweep') await clusters.control.peerings.sweep();
        if (after === 'deliver') await bus.deliverDue(signal);
        if (after === 'restart') cluster?.restart();
        if (after === 'dies' && cluster) cluster.alive = false;
        if (after === 'lives' && cluster) cluster.alive = true;
        await bothSidesAgree(setting);
        await namesAreUnique(setting);
      }
      await settle(setting);
      await bothSidesAgree(setting);
      const ready = new Set<string>();
      for (const { spec, state } of await sharedPeerings(setting)) {
        const ended = spec.unpeerRequestedAt !== undefined || state.removal !== undefined;
        expect(state.phase).toBe(ended ? 'Gone' : 'Ready');
        expect(state.leftBehind).toEqual([]);
        if (ended) met.gone += 1;
        else ready.add(spec.id);
      }
      met.ready += ready.size;
      for (const tenant of two)
        for (const { spec, state } of await all<PeeringRecord>(setting, partition.peerings(tenant)))
          if (!spec.across && state.removal === undefined) ready.add(spec.id);
      for (const cluster of known.played.values()) expect(cluster.peerings.filter((id) => !ready.has(id))).toEqual([]);
      const before = faulty.writes.count;
      await clusters.control.peerings.sweep();
      expect(faulty.writes.count).toBe(before);
    }),
    // A failing history takes minutes to shrink: it is printed as it is, with its seed.
    { ...drawn(25, { numRuns: 8, seed: 3 }), endOnFailure: true },
  );
  // Histories in which nothing came about prove nothing.
  expect(met.ready).toBeGreaterThan(3);
  expect(met.gone).toBeGreaterThan(3);
}, 120_000);
