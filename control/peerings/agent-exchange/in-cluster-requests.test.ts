import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { PeeringAsk } from '#shared/schema/protocol/agent-protocol.ts';
import { createLocalBus } from '../../adapters/local-bus/local-bus.ts';
import { createMemoryStore } from '../../adapters/memory/memory-store.ts';
import type { Op, Store } from '../../ports/store.ts';
import { key, partition } from '../../store/keys.ts';
import { adminOf, createBrokerClusters } from '../../testing/broker-clusters.ts';
import { dueItems } from '../../testing/due-items.ts';
import { openFacts } from '../../testing/simulated-cluster.ts';
import { linkingFacts } from '../../testing/simulated-link.ts';

const admin = adminOf('default');
const ask = (change: Partial<PeeringAsk> = {}): PeeringAsk => ({
  name: 'to-milan',
  uid: 'u1',
  generation: 1,
  provider: 'milan',
  resources: { cpu: '1' },
  class: 'default',
  deleting: false,
  ...change,
});

async function asking(...asks: PeeringAsk[]) {
  const clusters = createBrokerClusters();
  const rome = await clusters.join('rome');
  const milan = await clusters.join('milan');
  rome.asks = asks;
  const only = async () => {
    const { items } = await clusters.control.peerings.list(admin, { includeGone: true });
    return items;
  };
  return { world: clusters, rome, milan, only };
}

describe('a Peering object inside a cluster', () => {
  test('says what network it wants, and hears why it cannot have it', async () => {
    const { world: clusters, rome, only } = await asking(ask({ network: { inBand: true } }));
    await clusters.until(() => rome.answers[0]?.conditions[0]?.reason === 'InvalidInput', 10_000);
    expect(rome.answers[0]?.conditions[0]?.message).toContain('network.inBand is true without a network');
    for (const cluster of clusters.clusters.values()) cluster.facts = linkingFacts(openFacts);
    await clusters.step();
    rome.asks = [ask({ generation: 2, network: { mtu: 1400, gatewayLocation: 'consumer' } })];
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 10_000);
    expect((await only())[0]?.network).toMatchObject({ enabled: true, mtu: 1400, link: { server: 'rome' } });
  });

  test('makes the peering and is told of every phase', async () => {
    const { world: clusters, rome } = await asking(ask());
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 10_000);
    expect(rome.answers[0]).toMatchObject({
      name: 'to-milan',
      uid: 'u1',
      observedGeneration: 1,
      peering: expect.stringMatching(/^pe_/),
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'Ready', status: 'True' })]),
    });
  });

  test('changes the peering when it changes, and ends it when it goes', async () => {
    const { world: clusters, rome, only } = await asking(ask());
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 10_000);
    rome.asks = [ask({ generation: 2, resources: { cpu: '3' } })];
    await clusters.step();
    expect((await only())[0]).toMatchObject({ resources: { cpu: '3' } });
    rome.asks = [];
    await clusters.until(async () => (await only())[0]?.phase === 'Gone', 10_000);
    expect(rome.remains).toEqual([]);
  });

  test('ends the peering while it is being deleted, and hears when that is done', async () => {
    const { world: clusters, rome } = await asking(ask());
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 10_000);
    rome.asks = [ask({ deleting: true })];
    await clusters.until(() => rome.answers[0]?.phase === 'Gone', 10_000);
  });

  test.each([
    { what: 'too much', change: { resources: { cpu: '9' } }, reason: 'PolicyRefused', says: 'at most 8' },
    { what: 'itself', change: { provider: 'rome' }, reason: 'PeerSelf', says: 'itself' },
    { what: 'what is no quantity', change: { resources: { cpu: 'x' } }, reason: 'InvalidInput', says: 'cpu' },
  ])('that asks for $what is refused with the reason', async ({ change, reason, says }) => {
    const { world: clusters, rome, only } = await asking(ask(change));
    await clusters.step();
    await clusters.step();
    expect(rome.answers).toMatchObject([
      {
        phase: 'Failed',
        conditions: [{ type: 'Accepted', status: 'False', reason, message: expect.stringContaining(says) }],
      },
    ]);
    expect(await only()).toEqual([]);
  });

  test('that was refused is tried again by itself', async () => {
    const { world: clusters, rome, milan } = await asking(ask({ resources: { cpu: '9' } }));
    await clusters.step();
    milan.facts = {
      ...openFacts,
      policies: openFacts.policies.map((policy) => ({
        ...policy,
        asProvider: { ...policy.asProvider, maxResourcesPerPeer: {} },
      })),
    };
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 60_000);
  });

  test('beside another one for the same cluster is refused', async () => {
    const { world: clusters, rome } = await asking(ask(), ask({ name: 'also', uid: 'u2' }));
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 10_000);
    expect(rome.answers[1]).toMatchObject({ phase: 'Failed', conditions: [{ reason: 'AlreadyExists' }] });
  });

  test('takes over a peering that a person made', async () => {
    const { world: clusters, rome, only } = await asking();
    const { peering } = await clusters.control.peerings.request(admin, {
      consumer: 'rome',
      provider: 'milan',
      resources: { cpu: '2' },
    });
    rome.asks = [ask()];
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 10_000);
    expect(await only()).toMatchObject([{ id: peering.id, resources: { cpu: '1' } }]);
  });

  test('that owns the peering has the last word: the API may look at it and end it, and change nothing', async () => {
    const { world: clusters, rome, only } = await asking(ask());
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 10_000);
    expect((await only())[0]?.owner).toEqual({ kind: 'object', name: 'to-milan' });
    expect(rome.answers[0]?.owner).toBe('Object');
    const change = { consumer: 'rome', provider: 'milan', resources: { cpu: '2' } };
    await expect(clusters.control.peerings.request(admin, change)).rejects.toMatchObject({
      code: 'owned_by_object',
      message: expect.stringContaining('Peering to-milan in rome'),
    });
    expect((await only())[0]?.resources).toEqual({ cpu: '1' });
    const same = await clusters.control.peerings.request(admin, { ...change, resources: { cpu: '1' } });
    expect(same.created).toBe(false);
  });

  test('that leaves the last word to the broker asks once, shows what the API changes, and its end ends nothing', async () => {
    const { world: clusters, rome, only } = await asking(ask({ owner: 'Broker' }));
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 10_000);
    expect((await only())[0]).toMatchObject({ resources: { cpu: '1' }, owner: { kind: 'broker' } });
    await clusters.control.peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: { cpu: '2' } });
    rome.asks = [ask({ owner: 'Broker', generation: 2, resources: { cpu: '4' } })];
    await clusters.step();
    await clusters.step();
    expect(rome.answers).toMatchObject([{ observedGeneration: 2, owner: 'Broker', phase: 'Ready' }]);
    expect((await only())[0]?.resources).toEqual({ cpu: '2' });
    rome.asks = [];
    await clusters.step();
    await clusters.step();
    expect(await only()).toMatchObject([{ phase: 'Ready', resources: { cpu: '2' }, owner: { kind: 'broker' } }]);
  });

  test('hands the last word over and takes it back by one field', async () => {
    const { world: clusters, rome, only } = await asking(ask());
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 10_000);
    rome.asks = [ask({ owner: 'Broker', generation: 2 })];
    await clusters.step();
    await clusters.control.peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: { cpu: '2' } });
    expect((await only())[0]?.resources).toEqual({ cpu: '2' });
    rome.asks = [ask({ owner: 'Object', generation: 3 })];
    await clusters.step();
    expect((await only())[0]).toMatchObject({ resources: { cpu: '1' }, owner: { kind: 'object' } });
    rome.asks = [];
    await clusters.until(async () => (await only())[0]?.phase === 'Gone', 10_000);
  });

  test('does not bring back what a person ended, until it changes', async () => {
    const { world: clusters, rome, only } = await asking(ask());
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 10_000);
    await clusters.control.peerings.unpeer(admin, (await only())[0]?.id ?? '');
    await clusters.until(() => rome.answers[0]?.phase === 'Gone', 10_000);
    expect(rome.answers[0]?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Accepted', status: 'False', reason: 'EndedElsewhere' }),
    );
    rome.restart();
    await clusters.step();
    expect(await only()).toHaveLength(1);
    rome.asks = [ask({ generation: 2 })];
    await clusters.until(() => rome.answers[0]?.phase === 'Ready', 10_000);
    expect(await only()).toHaveLength(2);
  });
});

describe('a Peering object for a cluster that has not joined', () => {
  const toParis = ask({ provider: 'paris' });
  /** `before`: called once, with the first transaction that it is for. */
  function meddling(wanted: (ops: readonly Op[]) => boolean) {
    const meddle: { before?: () => Promise<void> } = {};
    const wrap = (store: Store): Store => ({
      ...store,
      async transact(ops, events, signal) {
        const { before } = meddle;
        if (before && wanted(ops)) {
          delete meddle.before;
          await before();
        }
        await store.transact(ops, events, signal);
      },
    });
    return { meddle, wrap };
  }
  const ofAsks = ({ sk }: Op): boolean => sk === key.asks('default', 'rome').sk;
  const planned = async ({ store }: { readonly store: Store }) => [
    ...(await store.query({ partition: partition.looks('default'), limit: 10 })).items,
    ...(await dueItems(store)),
  ];

  test('says that it waits, and is taken up when that cluster joins, not with the next sweep', async () => {
    const clock = new ManualClock();
    const memory = createMemoryStore({ clock });
    const read = new Set<string>();
    const store: Store = {
      ...memory,
      get: (pk, sk, signal) => {
        read.add(`${pk}/${sk}`);
        return memory.get(pk, sk, signal);
      },
    };
    const bus = createLocalBus({ store, clock, log: silentLog });
    const clusters = createBrokerClusters({ clock, deps: { store, bus } });
    const [rome, oslo] = [await clusters.join('rome'), await clusters.join('oslo')];
    rome.asks = [toParis];
    oslo.asks = [ask({ name: 'to-bern', uid: 'u2', provider: 'bern' })];
    await clusters.step();
    await clusters.step();
    expect(rome.answers).toMatchObject([
      {
        phase: 'Proposed',
        conditions: [
          {
            type: 'Accepted',
            status: 'False',
            reason: 'ClusterUnknown',
            message: expect.stringMatching(/^waits for cluster paris.*isthmus get clusters/),
          },
        ],
      },
    ]);
    const never = new AbortController().signal;
    while (await bus.deliverDue(never));
    clusters.rings.length = 0;
    read.clear();
    await clusters.join('paris');
    while (await bus.deliverDue(never));
    expect(clusters.rings.map(({ clusterId }) => clusterId)).toEqual(expect.arrayContaining(['rome', 'paris']));
    // Clusters that wait for another cluster are not looked at.
    expect([...read].filter((one) => one.endsWith('/asks'))).toEqual(['t/default/cluster/rome/asks']);
    for (let round = 0; round < 6; round += 1) await clusters.step();
    expect(rome.answers[0]?.phase).toBe('Ready');
    expect(oslo.answers[0]?.conditions[0]?.reason).toBe('ClusterUnknown');
  });

  test('misses no cluster that joins just before the wait is noted', async () => {
    const { meddle, wrap } = meddling((ops) => ops.some(ofAsks));
    const clusters = createBrokerClusters({ wrap });
    const rome = await clusters.join('rome');
    meddle.before = async () => void (await clusters.join('paris'));
    rome.asks = [toParis];
    await clusters.step();
    expect(meddle.before).toBeUndefined();
    expect((await clusters.control.peerings.list(admin)).items).toMatchObject([
      { consumer: 'rome', provider: 'paris' },
    ]);
    expect((await planned(clusters)).filter(({ sk }) => sk.includes('asks:'))).toEqual([]);
  });

  test('is tried again at once, and the less often the longer it waits', async () => {
    const clusters = createBrokerClusters();
    const rome = await clusters.join('rome');
    rome.asks = [toParis];
    await clusters.step();
    const start = clusters.clock.now();
    const looks: number[] = [];
    for (;;) {
      const { nextDueAt = Number.POSITIVE_INFINITY } = await clusters.control.peerings.sweep();
      if (nextDueAt - start > 86_400_000) break;
      looks.push((nextDueAt - start) / 1_000);
      clusters.clock.advance(nextDueAt - clusters.clock.now());
    }
    expect(looks.slice(0, 6)).toEqual([1, 2, 4, 8, 16, 32]);
    expect(looks.length).toBeLessThan(160);
  });

  test.each([
    { when: 'before its peering is made', wanted: (op: Op) => op.pk === partition.peerings('default') },
    { when: 'before that is noted', wanted: ofAsks },
  ])('that is deleted while it is tried again, $when, leaves no peering', async ({ wanted }) => {
    const { meddle, wrap } = meddling((ops) => ops.some(wanted));
    const clusters = createBrokerClusters({ wrap });
    const rome = await clusters.join('rome');
    rome.asks = [toParis];
    await clusters.step();
    await clusters.join('paris');
    meddle.before = async () => {
      rome.asks = [];
      await rome.report();
    };
    clusters.clock.advance(1_000);
    await clusters.control.peerings.sweep();
    expect(meddle.before).toBeUndefined();
    await clusters.until(async () => (await clusters.control.peerings.list(admin)).items.length === 0, 10_000);
    await clusters.step();
    expect(rome.answers).toEqual([]);
  });

  test('ends with the cluster that it is in', async () => {
    const clusters = createBrokerClusters();
    const rome = await clusters.join('rome');
    rome.asks = [toParis];
    await clusters.step();
    expect(await planned(clusters)).toHaveLength(2);
    rome.alive = false;
    await clusters.control.clusters.remove(admin, 'rome');
    clusters.clock.advance(1_000);
    await clusters.control.peerings.sweep();
    expect(await planned(clusters)).toEqual([]);
  });
});
