import { beforeEach, describe, expect, test } from 'vitest';
import { ObservedBatch } from '#shared/schema/protocol/agent-protocol.ts';
import type { AgentCaller } from '../../access/caller.ts';
import { adminOf, type BrokerClusters, createBrokerClusters, origin } from '../../testing/broker-clusters.ts';
import { openFacts } from '../../testing/simulated-cluster.ts';
import { linkingFacts } from '../../testing/simulated-link.ts';
import { acme, bolt, twoTenants } from '../../testing/two-tenants.ts';
import { storeSamples } from './samples.ts';

const admin = adminOf('default');
const minute = (ms: number): number => Math.floor(ms / 60_000) * 60;
const figures = { rttMicros: 2_000, received: 4_000, sent: 1_000 };

let clusters: BrokerClusters;
let id = '';
beforeEach(async () => {
  clusters = createBrokerClusters();
  const facts = linkingFacts(openFacts);
  for (const name of ['rome', 'milan']) await clusters.join(name, { facts });
  const asked = { consumer: 'rome', provider: 'milan', resources: {} };
  id = (await clusters.control.peerings.request(admin, asked)).peering.id;
  await clusters.until(async () => (await clusters.control.peerings.get(admin, id)).phase === 'Ready');
});

/** Of this many minutes ago, each with what is given. */
async function report(cluster: string, ago: readonly number[], data: object = figures): Promise<void> {
  const now = clusters.clock.now();
  const samples = ago.map((minutes) => ({ at: minute(now - minutes * 60_000), ...data }));
  const simulated = clusters.clusters.get(cluster);
  simulated?.samples.push({ peering: id, samples });
  await simulated?.report();
}
const series = (span: 'hour' | 'day' = 'hour') => clusters.control.peerings.samples(admin, id, span);

describe('what agents measured of a peering', () => {
  test('is read by end, a point for each minute of the last hour or each quarter of the last day', async () => {
    await report('rome', [90, 3, 2, 1]);
    await report('milan', [1], { cpuGranted: 2_000, cpuUsed: 500 });
    const { consumer, provider, from, to } = await series();
    expect(to - from).toBe(3_600_000);
    const ago = [3, 2, 1].map((minutes) => ({
      at: 1_000 * minute(clusters.clock.now() - minutes * 60_000),
      ...figures,
    }));
    expect(consumer).toEqual(ago);
    expect(provider).toEqual([{ at: ago[2]?.at, cpuGranted: 2_000, cpuUsed: 500 }]);
    const day = await series('day');
    expect(day.consumer?.length).toBeGreaterThanOrEqual(2);
    expect(day.consumer?.[0]).toMatchObject(figures);
    expect(day.stepMs).toBe(900_000);
  });

  test('survives a report that comes twice, and is gone a day later', async () => {
    await report('rome', [2, 1]);
    await report('rome', [2, 1]);
    expect((await series()).consumer).toHaveLength(2);
    clusters.clock.advance(26 * 3_600_000);
    expect((await series('day')).consumer).toEqual([]);
    const { items } = await clusters.store.query({ partition: 't/default/cluster/rome', limit: 200 });
    expect(items.filter(({ sk }) => sk.startsWith('hours/'))).toEqual([]);
  });

  test('of a time to come or of longer ago than a day is dropped', async () => {
    await report('rome', [-10, 25 * 60]);
    expect((await series('day')).consumer).toEqual([]);
  });

  test('takes one item for an hour, and never more than 26 for a peering', async () => {
    await report(
      'rome',
      Array.from({ length: 24 * 60 }, (_, minutes) => minutes),
    );
    const { items } = await clusters.store.query({ partition: 't/default/cluster/rome', limit: 200 });
    const hours = items.filter(({ sk }) => sk.startsWith('hours/'));
    expect(hours.length).toBeLessThanOrEqual(26);
    for (const { value } of hours) expect(JSON.stringify(value).length).toBeLessThan(60 * 80);
    expect((await series('day')).consumer?.length).toBeGreaterThanOrEqual(96);
  });

  test('is the throughput of the link until the next report says otherwise, and of no link that is away', async () => {
    const link = async () => (await clusters.control.peerings.get(admin, id)).network?.link?.consumer;
    await report('rome', [2, 1]);
    expect(await link()).toMatchObject({ value: 'Connected', throughput: { received: 4_000, sent: 1_000 } });
    const rome = clusters.clusters.get('rome');
    rome?.touch(1);
    await rome?.report();
    expect(await link()).toMatchObject({ throughput: { received: 4_000, sent: 1_000 } });
    if (rome) rome.links.up = false;
    await clusters.step();
    expect(await link()).not.toHaveProperty('throughput');
  });

  test('is no throughput of the present when it is of half an hour ago or of a time to come', async () => {
    const link = async () => (await clusters.control.peerings.get(admin, id)).network?.link?.consumer;
    await report('rome', [2, 1]);
    expect(await link()).toHaveProperty('throughput');
    clusters.clock.advance(30 * 60_000);
    const rome = clusters.clusters.get('rome');
    rome?.touch(1);
    await rome?.report();
    expect(await link()).not.toHaveProperty('throughput');
    await report('rome', [30, 29]);
    expect(await link()).not.toHaveProperty('throughput');
    await report('rome', [1]);
    expect(await link()).toHaveProperty('throughput');
    await report('rome', [-10]);
    expect(await link()).not.toHaveProperty('throughput');
  });

  test('is written no more when the request has ended', async () => {
    const rome: AgentCaller = { ...origin, tenant: 'default', clusterId: 'rome', principal: 'cluster/rome' };
    const { store, clock } = clusters;
    const life = new AbortController();
    const ending: typeof store = Object.assign(Object.create(store), {
      get: async (pk: string, sk: string) => {
        const found = await store.get(pk, sk);
        if (sk.startsWith('hours/')) life.abort();
        return found;
      },
    });
    const samples = [{ peering: id, samples: [{ at: minute(clock.now()), received: 1, sent: 1 }] }];
    await storeSamples({ store: ending, clock }, rome, samples, life.signal).catch(() => undefined);
    expect(life.signal.aborted).toBe(true);
    expect((await series()).consumer).toEqual([]);
  });

  test.each([
    ['peerings', 1_001, 0],
    ['samples of two peerings', 2, 501],
  ])('is refused in one report of more than a thousand %s', (_, peerings, each) => {
    const samples = Array.from({ length: each }, (_none, at) => ({ at }));
    const sent = Array.from({ length: peerings }, (_none, number) => ({ peering: `p${number}`, samples }));
    expect(ObservedBatch.safeParse({ sets: [], samples: sent }).success).toBe(false);
    expect(ObservedBatch.safeParse({ sets: [], samples: sent.slice(1) }).success).toBe(true);
  });

  test('is refused of a peering in which the cluster has no part', async () => {
    await clusters.join('turin');
    const turin: AgentCaller = { ...origin, tenant: 'default', clusterId: 'turin', principal: 'cluster/turin' };
    const samples = [{ peering: id, samples: [{ at: minute(clusters.clock.now()), received: 1, sent: 1 }] }];
    await clusters.control.exchange.observe(turin, { sets: [], samples });
    const { items } = await clusters.store.query({ partition: 't/default/cluster/turin', limit: 200 });
    expect(items.filter(({ sk }) => sk.startsWith('hours/'))).toEqual([]);
    expect(await series()).toMatchObject({ consumer: [], provider: [] });
  });
});

test('a tenant reads what its own end measured, and nothing of the end of another tenant', async () => {
  const two = await twoTenants();
  const { id: across } = await two.invited();
  await two.untilPhase(across, 'Ready');
  const at = minute(two.clock.now()) - 60;
  for (const [cluster, received] of [
    [two.rome, 1],
    [two.milan, 2],
  ] as const) {
    cluster.samples = [{ peering: across, samples: [{ at, received, sent: 0 }] }];
    await cluster.report();
  }
  const { samples } = two.control.peerings;
  const ends = await Promise.all([acme, bolt].map((caller) => samples(caller, across, 'hour')));
  expect(ends.map(({ consumer, provider }) => [consumer?.length, provider?.length])).toEqual([
    [1, undefined],
    [undefined, 1],
  ]);
  expect(ends[0]?.consumer?.[0]?.received).toBe(1);
  await expect(samples(adminOf('corp'), across, 'hour')).rejects.toMatchObject({ code: 'not_found' });
});
