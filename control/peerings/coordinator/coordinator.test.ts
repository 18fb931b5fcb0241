/**
 * What the event functions rest on: reports are only stored here, as if each process died before it decided, and everything is decided by functions
 * that events start, many at once.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { createDeliveredBus } from '../../adapters/eventbridge/delivered-bus.ts';
import { createLocalBus } from '../../adapters/local-bus/local-bus.ts';
import { createMemoryStore } from '../../adapters/memory/memory-store.ts';
import { type Control, createControl } from '../../control.ts';
import { peeringTrigger } from '../../events/peering-trigger.ts';
import type { Coordinator } from '../../model/coordinator.ts';
import type { InClusterRequests } from '../../model/peering-requests.ts';
import type { OutboxEvent, Store } from '../../ports/store.ts';
import { adminOf, createBrokerClusters } from '../../testing/broker-clusters.ts';
import { countingIds } from '../../testing/counting-ids.ts';
import { SimulatedCluster } from '../../testing/simulated-cluster.ts';
import { createExchange } from '../agent-exchange/exchange.ts';
import { createCoordinator } from './coordinator.ts';

const signal = new AbortController().signal;
const idleCoordinator: Coordinator = {
  look: async () => true,
  lookAtCluster: async () => undefined,
  isLive: async () => true,
};
const noRequests: InClusterRequests = {
  accept: async () => undefined,
  review: async () => undefined,
  reviewAbout: async () => undefined,
  answers: async () => [],
};

interface World {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly peering: string;
  /** Both clusters fetch, work and report; nothing decides. Answers with what was committed since. */
  round(): Promise<readonly OutboxEvent[]>;
  state(): Promise<unknown>;
  /** From the audit log, sorted: what each decision moved the peering from and to. */
  moves(): Promise<readonly string[]>;
}

async function openWorld(tenant = 'default', store?: Store, clock = new ManualClock()): Promise<World> {
  const deps = store === undefined ? {} : { store };
  const world = createBrokerClusters({ clock, deps });
  const exchange = createExchange(
    { store: world.store, clock, ids: countingIds(), log: silentLog },
    { coordinator: idleCoordinator, inClusterRequests: noRequests },
  );
  const accepting: Control = { ...world.control, exchange };
  const names = [`rome-${tenant}`, `milan-${tenant}`] as const;
  for (const name of names) await world.join(name, { tenant });
  const clusters = names.map((name) => new SimulatedCluster(name, tenant, () => accepting));
  const asked = { consumer: names[0], provider: names[1], resources: { cpu: '1' } };
  const { peering } = await world.control.peerings.request(adminOf(tenant), asked);
  let cursor = await world.store.newestCursor(tenant);
  return {
    store: world.store,
    clock,
    peering: peering.id,
    async round() {
      for (const cluster of clusters) {
        await cluster.pull();
        cluster.work((id) => clusters.find((one) => one.id === id));
        await cluster.report();
      }
      const events = await world.store.outbox(cursor, 100, tenant);
      cursor = events.at(-1)?.cursor ?? cursor;
      return events;
    },
    async state() {
      const { version: _, ...view } = await world.control.peerings.get(adminOf(tenant), peering.id);
      return view;
    },
    async moves() {
      const { items } = await world.control.audit.list(adminOf(tenant), { subject: `peering/${peering.id}` });
      return items
        .filter(({ action }) => action === 'peering.phase')
        .map(({ before, after }) => `${(before as { phase: unknown }).phase} -> ${(after as { phase: unknown }).phase}`)
        .sort();
    },
  };
}

const ids = countingIds();

/** One process that handles an event, with a store of its own behaviour. */
const functionOn = (world: Pick<World, 'clock'>, store: Store) =>
  peeringTrigger({
    coordinator: createCoordinator({
      store,
      clock: world.clock,
      ids,
      log: silentLog,
      channel: { ring: () => undefined },
    }),
    inClusterRequests: noRequests,
  });

const rounds = 8;

/** What one process makes of the events, one after the other. */
async function inOrder() {
  const world = await openWorld();
  for (let round = 0; round < rounds; round += 1) {
    const handler = functionOn(world, world.store);
    for (const event of await world.round()) await handler.handle(event, signal);
  }
  return { state: await world.state(), moves: await world.moves() };
}

test('events alone bring a peering to Ready when every process dies before it decides', async () => {
  const { state, moves } = await inOrder();
  expect(state).toMatchObject({ phase: 'Ready' });
  expect(moves.filter((move) => move.endsWith('-> Ready'))).toHaveLength(1);
});

test('a peering is never decided by two at a time: functions that run at once, on events in any order and twice, leave what one leaves in order', async () => {
  const alone = await inOrder();
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), async (s) => {
      const world = await openWorld();
      const contended: Store = {
        ...world.store,
        get: (...args) => s.schedule(Promise.resolve()).then(() => world.store.get(...args)) as never,
        query: (...args) => s.schedule(Promise.resolve()).then(() => world.store.query(...args)) as never,
        transact: (...args) => s.schedule(Promise.resolve()).then(() => world.store.transact(...args)),
      };
      for (let round = 0; round < rounds; round += 1) {
        const events = await world.round();
        const twice = [...events, ...events];
        await s.waitFor(Promise.all(twice.map((event) => functionOn(world, contended).handle(event, signal))));
      }
      expect(await world.state()).toEqual(alone.state);
      expect(await world.moves()).toEqual(alone.moves);
    }),
    { numRuns: 25 },
  );
}, 240_000);

describe('while functions fail for one tenant', () => {
  const failingFor = (tenant: string, store: Store): Store => ({
    ...store,
    get: (pk, sk, abort) =>
      pk.startsWith(`t/${tenant}/`) ? Promise.reject(new Error(`${tenant} is broken`)) : store.get(pk, sk, abort),
  });

  test('those of another are as quick as ever: each event is one invocation', async () => {
    const clock = new ManualClock();
    const store = createMemoryStore({ clock });
    const [broken, well] = [await openWorld('broken', store, clock), await openWorld('well', store, clock)];
    const bus = createDeliveredBus();
    bus.subscribe(functionOn(well, failingFor('broken', store)));
    const failures: unknown[] = [];
    for (let round = 0; round < rounds; round += 1) {
      for (const event of [...(await broken.round()), ...(await well.round())]) {
        await bus.deliver('peerings', event, signal).catch((error: unknown) => failures.push(error));
      }
    }
    expect(await well.state()).toMatchObject({ phase: 'Ready' });
    expect(await broken.state()).not.toMatchObject({ phase: 'Ready' });
    expect(failures.length).toBeGreaterThan(0);
  });

  test('those of another go on in the same pass of a bus in one process', async () => {
    const clock = new ManualClock();
    const store = createMemoryStore({ clock });
    const [broken, well] = [await openWorld('broken', store, clock), await openWorld('well', store, clock)];
    const bus = createLocalBus({ store, clock, log: silentLog });
    bus.subscribe(functionOn(well, failingFor('broken', store)));
    for (let round = 0; round < rounds; round += 1) {
      await broken.round();
      await well.round();
      await bus.deliverDue(signal);
    }
    expect(await well.state()).toMatchObject({ phase: 'Ready' });
    expect(await broken.state()).not.toMatchObject({ phase: 'Ready' });
  });
});

test('a control plane without the request path’s look is only slower: the sweep alone ends what the events did not', async () => {
  const world = await openWorld();
  const sweeping = createControl({
    store: world.store,
    clock: world.clock,
    ids: countingIds(),
    log: silentLog,
    channel: { ring: () => undefined },
    broker: () => ({ url: 'https://broker.test:8443' }),
  });
  for (let round = 0; round < 40; round += 1) {
    await world.round();
    world.clock.advance(60_000);
    await sweeping.peerings.sweep(signal);
  }
  expect(await world.state()).toMatchObject({ phase: 'Ready' });
});
