import { describe, expect, test } from 'vitest';
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import type { PeeringView } from '../../model/peering.ts';
import { adminOf, type BrokerClusters, createBrokerClusters } from '../../testing/broker-clusters.ts';
import { openFacts } from '../../testing/simulated-cluster.ts';

const admin = adminOf('default');
const terms = { consumer: 'rome', provider: 'milan', resources: { cpu: '2', memory: '2Gi' } };

async function peered(options: { readonly ready?: boolean } = {}) {
  const clusters = createBrokerClusters();
  const rome = await clusters.join('rome');
  const milan = await clusters.join('milan');
  const { peering } = await clusters.control.peerings.request(admin, terms);
  if (options.ready ?? true) await clusters.until(() => phaseIs(clusters, peering.id, 'Ready'));
  return { world: clusters, rome, milan, id: peering.id };
}

const get = (clusters: BrokerClusters, id: string): Promise<PeeringView> => clusters.control.peerings.get(admin, id);
const phaseIs = async (clusters: BrokerClusters, id: string, phase: string): Promise<boolean> =>
  (await get(clusters, id)).phase === phase;
const condition = (view: PeeringView, type: string) => view.conditions.find((c) => c.type === type);
const withPolicy = (asProvider: Partial<ClusterFacts['policies'][number]['asProvider']>): ClusterFacts => ({
  ...openFacts,
  policies: openFacts.policies.map((policy) => ({ ...policy, asProvider: { ...policy.asProvider, ...asProvider } })),
});

describe('peering two clusters', () => {
  test('goes through every phase to Ready and rings the agents on the way', async () => {
    const { world: clusters, id } = await peered();
    const view = await get(clusters, id);
    expect(Object.keys(view.phaseSince)).toEqual(['Connecting', 'Authenticating', 'Negotiating', 'Ready']);
    expect(view).toMatchObject({ waitingFor: 'nothing', granted: { cpu: '2', memory: '2Gi' }, nodeName: 'milan' });
    expect(view.conditions.every((c) => c.status === 'True')).toBe(true);
    expect(new Set(clusters.rings.map((r) => r.clusterId))).toEqual(new Set(['rome', 'milan']));
  });

  test('takes three exchanges: nothing but the broker and two agents moves', async () => {
    const { world: clusters, rome, milan, id } = await peered({ ready: false });
    const order: string[] = [];
    const peers = (name: string) => clusters.clusters.get(name);
    for (const cluster of [rome, milan, rome, rome]) {
      await cluster.pull();
      cluster.work(peers);
      await cluster.report();
      order.push((await get(clusters, id)).phase);
    }
    expect(order).toEqual(['Connecting', 'Authenticating', 'Negotiating', 'Ready']);
  });

  test('asked for again changes nothing, and with other resources changes the slice only', async () => {
    const { world: clusters, id, rome } = await peered();
    const before = await clusters.store.get('t/default/cluster/rome', `desired/${id}`);
    const again = await clusters.control.peerings.request(admin, terms);
    expect(again).toMatchObject({ created: false, peering: { id } });
    expect(await clusters.store.get('t/default/cluster/rome', `desired/${id}`)).toEqual(before);
    const more = await clusters.control.peerings.request(admin, { ...terms, resources: { cpu: '4' } });
    expect(more).toMatchObject({ created: false, peering: { id, phase: 'Ready', resources: { cpu: '4' } } });
    await clusters.step();
    await clusters.step();
    expect((await get(clusters, id)).granted).toEqual({ cpu: '4' });
    expect(rome.has(id, 'ResourceSlice')).toBe(true);
  });

  test.each([
    { what: 'itself', input: { ...terms, provider: 'rome' }, code: 'peer_self' },
    { what: 'an unknown cluster', input: { ...terms, provider: 'paris' }, code: 'cluster_unknown' },
    { what: 'a name that is no cluster ID', input: { ...terms, provider: 'No/Cluster' }, code: 'invalid_input' },
    { what: 'what is no quantity', input: { ...terms, resources: { cpu: 'lots' } }, code: 'invalid_input' },
    { what: 'a negative quantity', input: { ...terms, resources: { cpu: '-1' } }, code: 'invalid_input' },
    { what: 'a class that the provider does not offer', input: { ...terms, class: 'gold' }, code: 'policy_refused' },
    { what: 'more than the provider allows', input: { ...terms, resources: { cpu: '9' } }, code: 'policy_refused' },
  ])('refuses $what and changes nothing', async ({ input, code }) => {
    const clusters = createBrokerClusters();
    await clusters.join('rome');
    await clusters.join('milan');
    const before = await clusters.store.newestCursor();
    await expect(clusters.control.peerings.request(admin, input)).rejects.toMatchObject({ code });
    expect(await clusters.store.newestCursor()).toBe(before);
    expect((await clusters.control.peerings.list(admin, { includeGone: true })).items).toEqual([]);
  });

  test('names the resource and the limit when the policy refuses', async () => {
    const { world: clusters } = await peered();
    await expect(clusters.control.peerings.request(admin, { ...terms, resources: { cpu: '9' } })).rejects.toMatchObject(
      {
        message: 'resources.cpu is 9; PeeringPolicy default of milan allows at most 8 per peer',
        detail: { field: 'resources.cpu', limit: '8' },
      },
    );
  });

  test('waits for consent, says what to do, and goes on when the policy changes', async () => {
    const clusters = createBrokerClusters();
    await clusters.join('rome');
    const milan = await clusters.join('milan', { facts: withPolicy({ autoAccept: false }) });
    const { peering } = await clusters.control.peerings.request(admin, terms);
    expect(peering.phase).toBe('Proposed');
    expect(condition(peering, 'Consented')).toMatchObject({
      status: 'False',
      side: 'provider',
      action:
        'in milan, agree with `isthmus trust rome --as provider`, or set spec.asProvider.autoAccept to true in PeeringPolicy default',
    });
    await clusters.step();
    expect(milan.remains).toEqual([]);
    milan.facts = openFacts;
    await clusters.until(() => phaseIs(clusters, peering.id, 'Ready'), 10_000);
  });

  test('keeps what was consented when the policy is tightened later', async () => {
    const { world: clusters, milan, id } = await peered();
    milan.facts = withPolicy({ autoAccept: false, peers: [] });
    await clusters.step();
    expect((await get(clusters, id)).phase).toBe('Ready');
  });

  test('shows what a cluster refuses, as a failure that a change there ends', async () => {
    const { world: clusters, rome, id } = await peered({ ready: false });
    rome.refuses = 'ResourceSlice';
    await clusters.step();
    await clusters.step();
    const failed = await get(clusters, id);
    expect(failed.phase).toBe('Failed');
    expect(condition(failed, 'ResourcesGranted')).toMatchObject({
      reason: 'Refused',
      side: 'consumer',
      message: expect.stringContaining('rome refuses ResourceSlice'),
    });
    rome.refuses = undefined;
    await clusters.until(() => phaseIs(clusters, id, 'Ready'), 10_000);
  });

  test('degrades when the node is not ready or a side falls silent, and recovers', async () => {
    const { world: clusters, rome, milan, id } = await peered();
    rome.nodeReady = false;
    await clusters.step();
    expect(await get(clusters, id)).toMatchObject({
      phase: 'Degraded',
      waitingFor: expect.stringContaining('node milan is not ready'),
    });
    rome.nodeReady = true;
    await clusters.step();
    expect((await get(clusters, id)).phase).toBe('Ready');
    milan.alive = false;
    await clusters.until(() => phaseIs(clusters, id, 'Degraded'), 100_000);
    expect(condition(await get(clusters, id), 'ProviderOnline')).toMatchObject({ status: 'False', reason: 'NotHeard' });
    milan.alive = true;
    await clusters.until(() => phaseIs(clusters, id, 'Ready'), 5_000);
  });

  test('works in both directions at once, and ending one leaves the other', async () => {
    const { world: clusters, rome, id } = await peered();
    const back = await clusters.control.peerings.request(admin, { consumer: 'milan', provider: 'rome', resources: {} });
    await clusters.until(() => phaseIs(clusters, back.peering.id, 'Ready'));
    await clusters.control.peerings.unpeer(admin, id);
    await clusters.until(() => phaseIs(clusters, id, 'Gone'), 10_000);
    expect((await get(clusters, back.peering.id)).phase).toBe('Ready');
    expect(rome.has(back.peering.id, 'Tenant')).toBe(true);
  });
});

describe('unpeering', () => {
  test('cleans the consumer first, then the provider, and leaves nothing', async () => {
    const { world: clusters, rome, milan, id } = await peered();
    await clusters.control.peerings.unpeer(admin, id);
    await rome.pull();
    await milan.pull();
    milan.work((name) => clusters.clusters.get(name));
    expect(milan.has(id, 'Tenant')).toBe(true);
    const started = clusters.clock.now();
    await clusters.until(() => phaseIs(clusters, id, 'Gone'));
    expect(clusters.clock.now() - started).toBeLessThan(5_000);
    expect([...rome.remains, ...milan.remains]).toEqual([]);
    expect(await get(clusters, id)).toMatchObject({ leftBehind: [], waitingFor: 'nothing, it has ended' });
  });

  test('hides what has ended unless asked, and forgets it after a day', async () => {
    const { world: clusters, id } = await peered();
    await clusters.control.peerings.unpeer(admin, id);
    await clusters.until(() => phaseIs(clusters, id, 'Gone'));
    expect((await clusters.control.peerings.list(admin)).items).toEqual([]);
    expect((await clusters.control.peerings.list(admin, { includeGone: true })).items).toHaveLength(1);
    expect((await clusters.control.peerings.list(admin, { cluster: 'rome', includeGone: true })).items).toHaveLength(1);
    clusters.clock.advance(25 * 3_600_000);
    await clusters.store.sweep();
    expect((await clusters.control.peerings.list(admin, { includeGone: true })).items).toEqual([]);
    const left = async (partition: string) =>
      (await clusters.store.query({ partition, limit: 50 })).items.map(({ sk }) => sk);
    expect(await left('t/default/cluster/rome')).toEqual([]);
    expect(await left('t/default/heard')).toEqual(['milan!revision', 'milan!seen', 'rome!revision', 'rome!seen']);
  });

  test('ends on the consumer within a minute when the provider is dead, and the provider cleans when it is back', async () => {
    const { world: clusters, rome, milan, id } = await peered();
    milan.apiUp = false;
    milan.alive = false;
    await clusters.control.peerings.unpeer(admin, id);
    const started = clusters.clock.now();
    await clusters.until(() => phaseIs(clusters, id, 'Gone'), 60_000);
    expect(clusters.clock.now() - started).toBeLessThan(60_000);
    expect(rome.remains).toEqual([]);
    const view = await get(clusters, id);
    expect(view.leftBehind).toEqual([expect.stringMatching(/^milan: Namespace\/liqo-tenant-rome, .*when it is back$/)]);
    expect((await clusters.control.peerings.list(admin)).items).toHaveLength(1);
    await expect(clusters.control.peerings.request(admin, terms)).rejects.toMatchObject({ code: 'in_use' });
    milan.apiUp = true;
    milan.alive = true;
    milan.restart();
    await clusters.until(async () => (await get(clusters, id)).leftBehind.length === 0, 10_000);
    expect(milan.remains).toEqual([]);
    expect((await clusters.control.peerings.request(admin, terms)).created).toBe(true);
  });

  test('with a dead consumer frees the provider, and the consumer finds the tombstone', async () => {
    const { world: clusters, rome, milan, id } = await peered();
    rome.alive = false;
    await clusters.control.peerings.unpeer(admin, id);
    await clusters.until(() => phaseIs(clusters, id, 'Gone'), 60_000);
    expect(milan.remains).toEqual([]);
    expect(rome.remains).not.toEqual([]);
    rome.alive = true;
    await clusters.until(async () => (await get(clusters, id)).leftBehind.length === 0, 10_000);
    expect(rome.remains).toEqual([]);
  });

  test('treats a cluster that was removed by force as dead at once', async () => {
    const { world: clusters, rome, milan, id } = await peered();
    await expect(clusters.control.clusters.remove(admin, 'milan')).rejects.toMatchObject({ code: 'in_use' });
    milan.alive = false;
    milan.apiUp = false;
    await clusters.control.clusters.remove(admin, 'milan', { force: true });
    expect((await get(clusters, id)).phase).toBe('Unpeering');
    await clusters.until(() => phaseIs(clusters, id, 'Gone'), 5_000);
    expect(rome.remains).toEqual([]);
    expect((await get(clusters, id)).leftBehind).toEqual([expect.stringContaining('milan:')]);
  });

  test('of a proposal ends it at once', async () => {
    const clusters = createBrokerClusters();
    await clusters.join('rome');
    await clusters.join('milan', { facts: withPolicy({ autoAccept: false }) });
    const { peering } = await clusters.control.peerings.request(admin, terms);
    expect((await clusters.control.peerings.unpeer(admin, peering.id)).phase).toBe('Gone');
  });

  test('twice is once, and a stale If-Match is refused', async () => {
    const { world: clusters, id } = await peered();
    const { version } = await get(clusters, id);
    await expect(clusters.control.peerings.unpeer(admin, id, { ifVersion: version - 1 })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    const first = await clusters.control.peerings.unpeer(admin, id, { ifVersion: version });
    const second = await clusters.control.peerings.unpeer(admin, id);
    expect(second).toEqual(first);
    await expect(clusters.control.peerings.request(admin, terms)).rejects.toMatchObject({ code: 'in_use' });
  });

  test('and peering again works, with a new peering', async () => {
    const { world: clusters, id } = await peered();
    await clusters.control.peerings.unpeer(admin, id);
    await clusters.until(() => phaseIs(clusters, id, 'Gone'));
    const again = await clusters.control.peerings.request(admin, terms);
    expect(again.created).toBe(true);
    expect(again.peering.id).not.toBe(id);
    await clusters.until(() => phaseIs(clusters, again.peering.id, 'Ready'));
    expect((await clusters.control.peerings.find(admin, 'rome', 'milan')).id).toBe(again.peering.id);
  });
});
