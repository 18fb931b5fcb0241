import { describe, expect, test } from 'vitest';
import type { ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import type { AgentCaller } from '../../access/caller.ts';
import { adminOf, createBrokerClusters, origin } from '../../testing/broker-clusters.ts';
import { openFacts } from '../../testing/simulated-cluster.ts';

const admin = adminOf('default');
const agent = (clusterId: string, signedAt?: number): AgentCaller => ({
  ...origin,
  tenant: 'default',
  clusterId,
  principal: `cluster/${clusterId}`,
  ...(signedAt === undefined ? {} : { signedAt }),
});

async function peered() {
  const clusters = createBrokerClusters();
  for (const name of ['rome', 'milan', 'turin']) await clusters.join(name);
  const { peering } = await clusters.control.peerings.request(admin, {
    consumer: 'rome',
    provider: 'milan',
    resources: {},
  });
  const { exchange } = clusters.control;
  const report = (change: Partial<ObservedSet> = {}): ObservedSet => ({
    peering: peering.id,
    role: 'consumer',
    appliedRevision: 1,
    objects: [],
    refusals: [],
    ...change,
  });
  const observed = () => clusters.store.get<ObservedSet>('t/default/cluster/rome', `observed/${peering.id}`);
  return { ...clusters, exchange, id: peering.id, report, observed };
}

test('a certificate that the provider renewed reaches a consumer that can no longer log in to fetch it', async () => {
  const clusters = createBrokerClusters();
  const [rome, milan] = [await clusters.join('rome'), await clusters.join('milan')];
  await clusters.control.peerings.request(adminOf('default'), { consumer: 'rome', provider: 'milan', resources: {} });
  const wanted = async () => {
    const { sets } = await clusters.control.exchange.desired(agent('rome'), 0);
    const identity = sets[0]?.objects.find(({ kind }) => kind === 'Identity') as
      | { spec?: { authParams?: { signedCRT?: string } } }
      | undefined;
    return identity?.spec?.authParams?.signedCRT;
  };
  await clusters.until(async () => (await wanted()) === 'Y3J0', 10_000);
  rome.alive = false;
  milan.certificate = 'bmV3';
  await clusters.until(async () => (await wanted()) === 'bmV3', 10_000);
});

describe('the desired sets of an agent', () => {
  test('come whole at first, and later only as far as they changed', async () => {
    const { exchange, id } = await peered();
    const first = await exchange.desired(agent('rome'), 0);
    expect(first).toMatchObject({
      revision: 1,
      full: true,
      sets: [{ peering: id, role: 'consumer', peer: 'milan', state: 'present' }],
    });
    expect(await exchange.desired(agent('rome'), 1)).toMatchObject({ revision: 1, full: false, sets: [], answers: [] });
    expect((await exchange.desired(agent('rome'), 99)).full).toBe(true);
    expect((await exchange.desired(agent('turin'), 0)).sets).toEqual([]);
  });

  test('are what the first exchange needs, in the order in which they must be applied', async () => {
    const { exchange } = await peered();
    const kinds = async (name: string) =>
      (await exchange.desired(agent(name), 0)).sets[0]?.objects.map((o) => `${o.kind}/${o.metadata.name}`);
    expect(await kinds('rome')).toEqual([
      'Namespace/liqo-tenant-milan',
      'Secret/liqo-signed-nonce',
      'ResourceSlice/milan',
    ]);
    expect(await kinds('milan')).toEqual(['Namespace/liqo-tenant-rome', 'Secret/liqo-nonce']);
  });

  test('carry the same nonce, the base64 text of 64 random bytes, to both sides', async () => {
    const { exchange } = await peered();
    const nonce = async (name: string) =>
      (await exchange.desired(agent(name), 0)).sets[0]?.objects.find((o) => o.kind === 'Secret')?.data as {
        nonce: string;
      };
    const [ofRome, ofMilan] = [await nonce('rome'), await nonce('milan')];
    expect(ofRome).toEqual(ofMilan);
    const text = Buffer.from(ofRome.nonce, 'base64').toString();
    expect(text).toMatch(/^[A-Za-z0-9+/]{86}==$/);
    expect(Buffer.from(text, 'base64')).toHaveLength(64);
  });
});

describe('a report', () => {
  test('that says what is known writes nothing', async () => {
    const { exchange, report, store } = await peered();
    await exchange.observe(agent('rome'), { sets: [report()], facts: openFacts });
    const before = await store.newestCursor();
    expect(await exchange.observe(agent('rome'), { sets: [report()], facts: openFacts })).toMatchObject({
      revision: 1,
    });
    expect(await store.newestCursor()).toBe(before);
  });

  test('about a peering of others, or in the wrong role, is ignored', async () => {
    const { exchange, report, observed, store } = await peered();
    await exchange.observe(agent('turin'), { sets: [report()] });
    await exchange.observe(agent('rome'), { sets: [report({ role: 'provider' }), report({ peering: 'pe_unknown' })] });
    expect(await observed()).toBeUndefined();
    expect(
      (await store.query({ partition: 't/default/cluster/turin', limit: 10, from: 'observed', to: 'observed0' })).items,
    ).toEqual([]);
  });

  test('that was overtaken by a later one is ignored', async () => {
    const { exchange, report, observed } = await peered();
    await exchange.observe(agent('rome', 2_000), { sets: [report({ appliedRevision: 2 })] });
    await exchange.observe(agent('rome', 1_000), {
      sets: [report({ appliedRevision: 2, refusals: [{ object: 'x', code: 'y', message: 'z' }] })],
    });
    expect((await observed())?.value.refusals).toEqual([]);
  });

  test('of a restarted agent does not undo what had been applied', async () => {
    const { exchange, report, observed } = await peered();
    await exchange.observe(agent('rome'), { sets: [report({ appliedRevision: 1 })] });
    const refusals = [{ object: 'x', code: 'y', message: 'z' }];
    await exchange.observe(agent('rome'), { sets: [report({ appliedRevision: 0, refusals })] });
    expect((await observed())?.value).toMatchObject({ appliedRevision: 1, refusals });
  });

  test('cannot claim to have applied what is yet to be written', async () => {
    const { exchange, report, observed } = await peered();
    await exchange.observe(agent('rome'), { sets: [report({ appliedRevision: 99 })] });
    expect((await observed())?.value.appliedRevision).toBe(1);
  });

  test('of changed policies is audited', async () => {
    const { exchange, control } = await peered();
    await exchange.observe(agent('milan'), { sets: [], facts: { ...openFacts, policies: [] } });
    const { items } = await control.audit.list(admin, { subject: 'cluster/milan' });
    expect(items[0]).toMatchObject({ action: 'cluster.policies', principal: 'cluster/milan', after: [] });
  });

  test('with forty-five peerings is stored whole', async () => {
    const { exchange, control, join, store } = await peered();
    const sets: ObservedSet[] = [];
    for (let i = 0; i < 45; i += 1) {
      await join(`c${i}`);
      const { peering } = await control.peerings.request(admin, { consumer: 'rome', provider: `c${i}`, resources: {} });
      sets.push({ peering: peering.id, role: 'consumer', appliedRevision: 1, objects: [], refusals: [] });
    }
    await exchange.observe(agent('rome'), { sets });
    const { items } = await store.query({
      partition: 't/default/cluster/rome',
      limit: 100,
      from: 'observed/',
      to: 'observed0',
    });
    expect(items).toHaveLength(45);
  });
});
