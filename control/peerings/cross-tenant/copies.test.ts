/** Peerings across tenants from end to end, with a simulated cluster on each side. */
import { describe, expect, test } from 'vitest';
import { openFacts } from '../../testing/simulated-cluster.ts';
import { acme, bolt, corp, twoTenants, worldlyFacts } from '../../testing/two-tenants.ts';

const day = 86_400_000;

describe('invited', () => {
  test('a consumer redeems, both clusters agree, the node is ready, and both tenants see it', async () => {
    const { control, invited, untilPhase, view, rome, milan } = await twoTenants();
    const peering = await invited({ cpu: '4', memory: '8Gi' });
    expect(peering).toMatchObject({
      consumer: 'rome',
      provider: 'milan',
      resources: { cpu: '4', memory: '8Gi' },
      across: { side: 'consumer', peerTenant: 'bolt', by: 'invitation' },
    });
    await untilPhase(peering.id, 'Ready');
    expect((await view(bolt, peering.id)).across).toMatchObject({ side: 'provider', peerTenant: 'acme' });
    expect(rome.has(peering.id, 'Node')).toBe(true);
    expect(milan.has(peering.id, 'Tenant')).toBe(true);
    for (const caller of [acme, bolt]) {
      expect((await control.peerings.list(caller)).items.map(({ id }) => id)).toEqual([peering.id]);
      expect((await control.peerings.find(caller, 'rome', 'milan')).id).toBe(peering.id);
      const types = (await control.events.list(caller, { limit: 200 })).items.map(({ type }) => type);
      expect(types).toContain('peering.requested');
      expect(types).toContain('peering.phase-changed');
      const actions = (await control.audit.list(caller, { subject: `peering/${peering.id}` })).items;
      expect(actions.map(({ action }) => action)).toContain('peering.request');
    }
    await expect(control.peerings.get(corp, peering.id)).rejects.toMatchObject({ code: 'not_found' });
  });

  test.each([
    { who: 'the consumer', caller: acme, endedBy: 'consumer' },
    { who: 'the provider', caller: bolt, endedBy: 'provider' },
  ])('$who ends it, and nothing is left on either side', async ({ caller, endedBy }) => {
    const { control, invited, untilPhase, view, rome, milan } = await twoTenants();
    const { id } = await invited();
    await untilPhase(id, 'Ready');
    await control.peerings.unpeer(caller, id);
    await untilPhase(id, 'Gone');
    expect([rome.remains, milan.remains]).toEqual([[], []]);
    for (const side of [acme, bolt]) {
      expect(await view(side, id)).toMatchObject({ leftBehind: [], across: { endedBy } });
      expect((await control.peerings.list(side)).items).toEqual([]);
    }
  });

  test('a side that is dead does not keep the other; its own tenant learns what is left, the other that it is not confirmed', async () => {
    const { control, invited, until, untilPhase, view, milan } = await twoTenants();
    const { id } = await invited();
    await untilPhase(id, 'Ready');
    milan.alive = false;
    await control.peerings.unpeer(acme, id);
    await untilPhase(id, 'Gone');
    expect((await view(acme, id)).leftBehind).toEqual(['milan: not confirmed']);
    expect((await view(bolt, id)).leftBehind[0]).toContain('Namespace/');
    milan.alive = true;
    await until(async () => (await view(acme, id)).leftBehind.length === 0);
    expect(milan.remains).toEqual([]);
  });

  test('an entry and its names are free again once it is over', async () => {
    const { control, invited, untilPhase, clock, view } = await twoTenants();
    const first = await invited();
    await untilPhase(first.id, 'Ready');
    await control.peerings.unpeer(bolt, first.id);
    await untilPhase(first.id, 'Gone');
    const second = await invited();
    await untilPhase(second.id, 'Ready');
    clock.advance(2 * day);
    await expect(view(acme, first.id)).rejects.toMatchObject({ code: 'not_found' });
    expect((await control.peerings.find(bolt, 'rome', 'milan')).id).toBe(second.id);
  });

  test('the consumer asks for more and for less, within what was agreed', async () => {
    const { control, invited, until, untilPhase, view } = await twoTenants();
    const { id } = await invited({ cpu: '4' });
    await untilPhase(id, 'Ready');
    const ask = (cpu: string, caller = acme) =>
      control.peerings.request(caller, { consumer: 'rome', provider: 'milan', resources: { cpu } });
    expect((await ask('2')).created).toBe(false);
    expect((await view(bolt, id)).resources).toEqual({ cpu: '2' });
    await expect(ask('5')).rejects.toMatchObject({ code: 'consent_exceeded' });
    await expect(ask('3', bolt)).rejects.toMatchObject({ code: 'cluster_unknown' });
    await until(async () => (await view(acme, id)).granted?.cpu === '2');
  });

  test('a Peering object inside the consumer does not take it over, and is told so', async () => {
    const { rome, invited, untilPhase, step, view } = await twoTenants();
    const { id, resources } = await invited();
    await untilPhase(id, 'Ready');
    const ask = {
      name: 'gitops',
      uid: 'u1',
      generation: 1,
      provider: 'milan',
      resources: { cpu: '1' },
      class: 'default',
    };
    rome.asks = [{ ...ask, deleting: false }];
    await step();
    await step();
    expect(rome.answers[0]?.conditions[0]).toMatchObject({
      type: 'Accepted',
      status: 'False',
      reason: 'AlreadyExists',
    });
    rome.asks = [];
    await step();
    expect(await view(acme, id)).toMatchObject({ phase: 'Ready', resources });
  });

  test('a cluster that leaves ends it for the other tenant too', async () => {
    const { control, invited, untilPhase } = await twoTenants();
    const { id } = await invited();
    await untilPhase(id, 'Ready');
    await expect(control.clusters.remove(bolt, 'milan')).rejects.toMatchObject({ code: 'in_use' });
    await control.clusters.remove(bolt, 'milan', { force: true });
    await untilPhase(id, 'Gone');
  });

  test('an If-Match of the version that one side read ends it, an older one does not', async () => {
    const { control, invited, untilPhase, view } = await twoTenants();
    const { id, version } = await invited();
    await untilPhase(id, 'Ready');
    await expect(control.peerings.unpeer(acme, id, { ifVersion: version })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    await control.peerings.unpeer(acme, id, { ifVersion: (await view(acme, id)).version });
    await untilPhase(id, 'Gone');
  });

  test('both directions share one pair of clusters', async () => {
    const { control, invited, untilPhase, rome, milan } = await twoTenants();
    const there = await invited();
    const { code } = await control.invitations.create(acme, { cluster: 'rome' });
    const { peering: back } = await control.invitations.redeem(bolt, { code, consumer: 'milan' });
    await untilPhase(there.id, 'Ready');
    await untilPhase(back.id, 'Ready');
    await control.peerings.unpeer(acme, there.id);
    await untilPhase(there.id, 'Gone');
    await untilPhase(back.id, 'Ready');
    await control.peerings.unpeer(acme, back.id);
    await untilPhase(back.id, 'Gone');
    expect([rome.remains, milan.remains]).toEqual([[], []]);
  });
});

describe('what the clusters themselves say', () => {
  const facts = (tenants: string[] | undefined, autoAccept = true) => ({
    ...openFacts,
    policies: openFacts.policies.map((p) => ({
      ...p,
      ...(tenants ? { tenants } : {}),
      asConsumer: { ...p.asConsumer, autoAccept },
      asProvider: { ...p.asProvider, autoAccept },
    })),
  });

  test.each([
    { what: 'a policy about all tenants', consumer: facts(['*']), provider: facts(['*']), phase: 'Ready' },
    {
      what: 'policies that name the other tenant',
      consumer: facts(['bolt']),
      provider: facts(['acme']),
      phase: 'Ready',
    },
    {
      what: 'a provider that accepts nothing by itself: its tenant agreed',
      consumer: facts(['*']),
      provider: facts(['*'], false),
      phase: 'Ready',
    },
    {
      what: 'a consumer that accepts nothing by itself',
      consumer: facts(['*'], false),
      provider: facts(['*']),
      phase: 'Proposed',
    },
    { what: 'a provider about other tenants', consumer: facts(['*']), provider: facts(['corp']), phase: 'Proposed' },
    { what: 'a provider that names no tenants', consumer: facts(['*']), provider: facts(undefined), phase: 'Proposed' },
    { what: 'a consumer that names no tenants', consumer: facts(undefined), provider: facts(['*']), phase: 'Proposed' },
  ] as const)('$what: $phase', async ({ consumer, provider, phase }) => {
    const fixture = await twoTenants();
    fixture.rome.facts = consumer;
    fixture.milan.facts = provider;
    await fixture.step();
    const { id } = await fixture.invited();
    for (let i = 0; i < 20; i += 1) {
      await fixture.step();
      fixture.clock.advance(500);
      await fixture.control.peerings.sweep();
    }
    expect((await fixture.view(acme, id)).phase).toBe(phase);
  });

  test('within a tenant, a policy about other tenants only is not consent', async () => {
    const fixture = await twoTenants();
    await fixture.join('turin', { tenant: 'acme', facts: facts(['bolt']) });
    const { peering } = await fixture.control.peerings.request(acme, {
      consumer: 'rome',
      provider: 'turin',
      resources: {},
    });
    expect(peering.phase).toBe('Proposed');
  });

  test('an agreement that both clusters did not follow in time ends with its invitation', async () => {
    const fixture = await twoTenants();
    fixture.rome.facts = facts(['*'], false);
    await fixture.step();
    const { id, phase, across } = await fixture.invited();
    expect(phase).toBe('Proposed');
    fixture.clock.advance(7 * day);
    await fixture.control.peerings.sweep();
    const over = await fixture.view(acme, id);
    expect(over.phase).toBe('Gone');
    expect(over.conditions.find(({ type }) => type === 'Consented')).toMatchObject({ reason: 'Lapsed' });
    expect(across?.lapsesAt).toBeLessThanOrEqual(fixture.clock.now());
    fixture.rome.facts = worldlyFacts;
    await fixture.step();
    expect((await fixture.view(bolt, id)).phase).toBe('Gone');
  });
});

test.each([
  { gone: 'acme', who: 'the consumer’s', stays: bolt },
  { gone: 'bolt', who: 'the provider’s', stays: acme },
])(
  'when $who tenant is deleted, the other side ends clean and its names are free, agents dead or alive',
  async ({ gone, stays }) => {
    for (const alive of [true, false]) {
      const fixture = await twoTenants();
      const { control, invited, untilPhase, view, rome, milan, store } = fixture;
      const [leaving, staying] = gone === 'acme' ? [rome, milan] : [milan, rome];
      const { id } = await invited();
      await untilPhase(id, 'Ready');
      await control.directory.publish(gone === 'acme' ? acme : bolt, { cluster: leaving.id });
      leaving.alive = alive;
      const operator = { from: 'test', requestId: 'rq', principal: 'operator/ok_1' };
      await control.tenants.deletion.byOperator(operator as never, gone, { confirm: gone, force: true });
      await fixture.until(async () => {
        const left = await control.tenants.deletion.sweep();
        return left === 0 && (await view(stays, id)).phase === 'Gone';
      });
      leaving.alive = false;
      await fixture.until(() => staying.remains.length === 0);
      expect((await view(stays, id)).conditions.find(({ status }) => status === 'False')?.message ?? '').not.toContain(
        'Namespace',
      );
      const claim = await store.get<object>(`t/${stays.tenant}/cluster/${staying.id}`, `peer/${leaving.id}`);
      expect(claim?.expiresAt).toBeDefined();
      expect((await control.directory.list(stays)).items).toEqual([]);
      // The deleted tenant is nowhere but in what expires by itself, and in the other one's history.
      for (const path of ['peerings', 'clusters', 'directory', 'invitations', `cluster/${leaving.id}`])
        expect((await store.query({ partition: `t/${gone}/${path}`, limit: 10 })).items).toEqual([]);
    }
  },
);

test('a tenant that is suspended or being deleted enters into nothing new', async () => {
  const { control, store } = await twoTenants();
  const { code } = await control.invitations.create(bolt, { cluster: 'milan' });
  for (const state of ['suspended', 'deleting']) {
    const { version = 0, value } = (await store.get<object>('t/bolt', 'tenant')) ?? {};
    await store.transact([
      { op: 'update', pk: 't/bolt', sk: 'tenant', value: { ...value, state }, ifVersion: version },
    ]);
    await expect(control.invitations.redeem(acme, { code, consumer: 'rome' })).rejects.toMatchObject({
      code: 'in_use',
      message: 'tenant bolt enters into no new peerings at present',
    });
  }
  expect((await control.peerings.list(acme)).items).toEqual([]);
});
