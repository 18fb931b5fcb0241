/** Requests across tenants: asked, answered, approved by rule, withdrawn, expired. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Crash, createFaultyStore } from '../testing/faulty-store.ts';
import { acme, bolt, corp, twoTenants, worldlyFacts } from '../testing/two-tenants.ts';
import { checkRule, type NewApprovalRule, ruleAllows } from './approval-rule.ts';
import type { NewRequest } from './request.ts';

const day = 86_400_000;
const wanted = { consumer: 'rome', providerTenant: 'bolt', provider: 'milan' } satisfies NewRequest;

async function requested(over: Partial<NewRequest> = {}) {
  const clusters = await twoTenants();
  await clusters.published();
  const { request } = await clusters.control.requests.ask(acme, { ...wanted, resources: { cpu: '2' }, ...over });
  return { ...clusters, request };
}

describe('asking', () => {
  test('puts it into the inbox of the asked tenant and the sent list of the asking tenant', async () => {
    const { control, request } = await requested({ reason: 'spring load' });
    expect(request).toMatchObject({ state: 'pending', direction: 'sent', reason: 'spring load' });
    const [received] = (await control.requests.list(bolt)).items;
    expect(received).toMatchObject({ id: request.id, direction: 'received', consumerTenant: 'acme', consumer: 'rome' });
    expect((await control.requests.list(acme)).items).toEqual([]);
    expect((await control.requests.list(acme, { direction: 'sent' })).items).toHaveLength(1);
    expect((await control.requests.list(bolt, { state: 'approved' })).items).toEqual([]);
    expect((await control.events.list(bolt)).items.map(({ type }) => type)).toContain('request.received');
    expect((await control.events.list(acme)).items.map(({ type }) => type)).toContain('request.sent');
  });

  test('twice for one pair is one request, until that is decided', async () => {
    const { control, request } = await requested();
    const again = await control.requests.ask(acme, { ...wanted, resources: { cpu: '7' } });
    expect([again.created, again.request.id]).toEqual([false, request.id]);
    await control.requests.reject(bolt, request.id, 'no');
    const third = await control.requests.ask(acme, wanted);
    expect([third.created, third.request.id === request.id]).toEqual([true, false]);
  });

  test.each([
    { what: 'a cluster that is not published', over: { provider: 'oslo' }, code: 'not_found' },
    { what: 'a tenant that is not', over: { providerTenant: 'nobody' }, code: 'not_found' },
    { what: 'an own tenant', over: { providerTenant: 'acme' }, code: 'invalid_input' },
    { what: 'an unknown cluster of one’s own', over: { consumer: 'oslo' }, code: 'cluster_unknown' },
    { what: 'no quantity', over: { resources: { cpu: 'x' } }, code: 'invalid_input' },
    { what: 'a novel', over: { reason: 'x'.repeat(501) }, code: 'invalid_input' },
    { what: 'an age', over: { expiresInSeconds: 91 * 86_400 }, code: 'invalid_input' },
  ])('for $what is $code', async ({ over, code }) => {
    const { control, published } = await twoTenants();
    await published();
    await expect(control.requests.ask(acme, { ...wanted, ...over })).rejects.toMatchObject({ code });
    expect((await control.requests.list(bolt)).items).toEqual([]);
  });

  test('is not for viewers, nor is deciding', async () => {
    const { control, request } = await requested();
    const denied = { code: 'forbidden' };
    await expect(control.requests.ask({ ...acme, role: 'viewer' }, wanted)).rejects.toMatchObject(denied);
    await expect(control.requests.approve({ ...bolt, role: 'viewer' }, request.id)).rejects.toMatchObject(denied);
  });
});

describe('deciding', () => {
  test('approval peers the clusters within what was asked for', async () => {
    const { control, request, untilPhase, view } = await requested();
    const approved = await control.requests.approve(bolt, request.id, 'welcome');
    expect(approved).toMatchObject({ state: 'approved', answer: 'welcome', decidedBy: 'api-key/ak_test' });
    await untilPhase(approved.peering ?? '', 'Ready');
    expect((await view(acme, approved.peering ?? '')).across).toMatchObject({ by: 'request', limits: { cpu: '2' } });
    const mine = await control.requests.get(acme, request.id);
    expect(mine).toMatchObject({ state: 'approved', answer: 'welcome', peering: approved.peering });
    expect(mine).not.toHaveProperty('decidedBy');
    expect((await control.requests.approve(bolt, request.id)).version).toBe(approved.version);
    await expect(control.requests.reject(bolt, request.id)).rejects.toMatchObject({ code: 'request_closed' });
  });

  test('rejection tells the reason and makes nothing', async () => {
    const { control, request } = await requested();
    await control.requests.reject(bolt, request.id, 'not this week');
    expect(await control.requests.get(acme, request.id)).toMatchObject({ state: 'rejected', answer: 'not this week' });
    expect((await control.peerings.list(acme)).items).toEqual([]);
    await expect(control.requests.approve(bolt, request.id)).rejects.toMatchObject({ code: 'request_closed' });
  });

  test('only the asked tenant decides and only the asking tenant withdraws; other tenants do not find it', async () => {
    const { control, request } = await requested();
    const missing = { code: 'not_found' };
    for (const caller of [acme, corp]) {
      await expect(control.requests.approve(caller, request.id)).rejects.toMatchObject(missing);
      await expect(control.requests.reject(caller, request.id)).rejects.toMatchObject(missing);
    }
    for (const caller of [bolt, corp])
      await expect(control.requests.withdraw(caller, request.id)).rejects.toMatchObject(missing);
    await expect(control.requests.get(corp, request.id)).rejects.toMatchObject(missing);
    expect((await control.requests.withdraw(acme, request.id)).state).toBe('withdrawn');
    await expect(control.requests.approve(bolt, request.id)).rejects.toMatchObject({ code: 'request_closed' });
  });

  test('both at once: one of them counts', async () => {
    const { control, request } = await requested();
    const both = await Promise.allSettled([
      control.requests.approve(bolt, request.id),
      control.requests.withdraw(acme, request.id),
      control.requests.reject(bolt, request.id),
    ]);
    expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const { state } = await control.requests.get(bolt, request.id);
    expect((await control.requests.get(acme, request.id)).state).toBe(state);
    expect((await control.peerings.list(bolt)).items).toHaveLength(state === 'approved' ? 1 : 0);
  });

  test('too late is too late: it expires for both, with an event, and the pair may be asked for again', async () => {
    const { control, clock, request } = await requested({ expiresInSeconds: 3_600 });
    clock.advance(3_600_000);
    expect((await control.requests.get(acme, request.id)).state).toBe('expired');
    await expect(control.requests.approve(bolt, request.id)).rejects.toMatchObject({ code: 'request_closed' });
    await control.peerings.sweep();
    for (const caller of [acme, bolt])
      expect((await control.events.list(caller)).items.map(({ type }) => type)).toContain('request.expired');
    expect((await control.requests.ask(acme, wanted)).created).toBe(true);
    clock.advance(32 * day);
    await expect(control.requests.get(bolt, request.id)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('approval of what the cluster’s own policy refuses says so to the approver, and leaves it pending', async () => {
    const { control, request } = await requested({ resources: { cpu: '9' } });
    await expect(control.requests.approve(bolt, request.id)).rejects.toMatchObject({
      code: 'policy_refused',
      message: expect.stringContaining('PeeringPolicy default'),
    });
    expect((await control.requests.get(bolt, request.id)).state).toBe('pending');
  });
});

describe('approval rules', () => {
  const rule: NewApprovalRule = {
    name: 'friends',
    tenants: ['acme'],
    labels: { tier: 'gold' },
    maxResources: { cpu: '2' },
  };

  test('approve at once; the asking tenant learns that, and not by which rule', async () => {
    const clusters = await twoTenants();
    const { control, published, untilPhase } = clusters;
    await published();
    const { id } = await control.approvalRules.create(bolt, rule);
    const { request } = await control.requests.ask(acme, { ...wanted, resources: { cpu: '1' } });
    expect(request).toMatchObject({ state: 'approved', peering: expect.any(String) });
    expect(JSON.stringify([request, await control.events.list(acme), await control.audit.list(acme)])).not.toContain(
      id,
    );
    expect((await control.requests.get(bolt, request.id)).decidedBy).toBe(`approval-rule/${id}`);
    await untilPhase(request.peering ?? '', 'Ready');
  });

  test.each([
    { what: 'another tenant', over: { tenants: ['corp'] }, resources: { cpu: '1' } },
    { what: 'more than it allows', over: {}, resources: { cpu: '3' } },
    { what: 'an open end', over: {}, resources: {} },
    { what: 'a cluster without the label', over: { labels: { tier: 'silver' } }, resources: { cpu: '1' } },
    { what: 'another class', over: { classes: ['gpu'] }, resources: { cpu: '1' } },
  ])('leave $what to the inbox', async ({ over, resources }) => {
    const { control, published } = await twoTenants();
    await published();
    await control.approvalRules.create(bolt, { ...rule, ...over });
    expect((await control.requests.ask(acme, { ...wanted, resources })).request.state).toBe('pending');
  });

  test('approve as many as they may, and the next waits', async () => {
    const clusters = await twoTenants();
    const { control, published } = clusters;
    await published();
    await clusters.join('turin', { tenant: 'acme', facts: worldlyFacts });
    await control.approvalRules.create(bolt, { ...rule, uses: 1 });
    const ask = (consumer: string) => control.requests.ask(acme, { ...wanted, consumer, resources: { cpu: '1' } });
    const both = await Promise.all([ask('rome'), ask('turin')]);
    expect(both.map(({ request }) => request.state).sort()).toEqual(['approved', 'pending']);
    expect((await control.approvalRules.list(bolt)).items[0]?.used).toBe(1);
  });

  test('are listed page by page, and there are at most 50', async () => {
    const { control } = await twoTenants();
    for (let i = 0; i < 50; i += 1) await control.approvalRules.create(bolt, { ...rule, name: `r${i}` });
    await expect(control.approvalRules.create(bolt, rule)).rejects.toMatchObject({ code: 'limit_reached' });
    const first = await control.approvalRules.list(bolt, { limit: 30 });
    const second = await control.approvalRules.list(bolt, {
      limit: 30,
      ...(first.cursor ? { cursor: first.cursor } : {}),
    });
    expect([...first.items, ...second.items].map(({ name }) => name)).toEqual(
      Array.from({ length: 50 }, (_, i) => `r${i}`),
    );
    expect(second.cursor).toBeUndefined();
  });

  test('are made and deleted by admins of their own tenant, and decide on what comes later', async () => {
    const { control, published } = await twoTenants();
    await published();
    const { id } = await control.approvalRules.create(bolt, rule);
    const operator = { ...bolt, role: 'operator' as const };
    await expect(control.approvalRules.create(operator, rule)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(control.approvalRules.delete(acme, id)).rejects.toMatchObject({ code: 'not_found' });
    expect((await control.approvalRules.list(acme)).items).toEqual([]);
    await control.approvalRules.delete(bolt, id);
    const { request } = await control.requests.ask(acme, { ...wanted, resources: { cpu: '1' } });
    expect(request.state).toBe('pending');
    await control.approvalRules.create(bolt, rule);
    expect((await control.requests.get(acme, request.id)).state).toBe('pending');
  });

  test.each([
    { input: { ...rule, name: '' }, field: 'name' },
    { input: { ...rule, tenants: [] }, field: 'tenants' },
    { input: { ...rule, tenants: ['Acme'] }, field: 'tenants' },
    { input: { ...rule, maxResources: { cpu: '?' } }, field: 'maxResources.cpu' },
    { input: { ...rule, labels: { 'a b': '' } }, field: 'labels.a b' },
  ])('with a wrong $field are refused', async ({ input, field }) => {
    const { control } = await twoTenants();
    await expect(control.approvalRules.create(bolt, input)).rejects.toMatchObject({
      code: 'invalid_input',
      detail: { field },
    });
  });

  test('asking for less never turns a yes into a no', () => {
    const cpu = fc.integer({ min: 0, max: 8 });
    fc.assert(
      fc.property(cpu, cpu, cpu, fc.boolean(), (most, more, less, named) => {
        const given = checkRule({ ...rule, labels: {}, maxResources: named ? { cpu: `${most}` } : {} });
        const ask = (amount: number) =>
          ruleAllows(given, { tenant: 'acme', labels: {}, resources: { cpu: `${amount}` }, class: 'default' });
        expect(ask(more)).toBe(!named || more <= most);
        if (ask(more) && less <= more) expect(ask(less)).toBe(true);
      }),
    );
  });
});

test('dying at any write of asking, approving or rejecting leaves both tenants with the same story', async () => {
  for (const when of ['before', 'after'] as const) {
    for (let at = 1; at <= 3; at += 1) {
      for (const dying of ['ask', 'byRule', 'approve', 'reject'] as const) {
        const faulty = createFaultyStore();
        const clusters = await twoTenants({ wrap: faulty.wrap });
        const { control } = clusters;
        await clusters.published();
        if (dying === 'byRule') await control.approvalRules.create(bolt, { name: 'all', tenants: ['*'] });
        const ask = () => control.requests.ask(acme, wanted);
        const before = dying === 'approve' || dying === 'reject' ? (await ask()).request.id : '';
        const act = () => (dying === 'approve' || dying === 'reject' ? control.requests[dying](bolt, before) : ask());
        Object.assign(faulty.fault, { in: at, when });
        await act().catch((error: unknown) => {
          if (!(error instanceof Crash)) throw error;
        });
        faulty.fault.in = 0;
        const received = (await control.requests.list(bolt)).items;
        const sent = (await control.requests.list(acme, { direction: 'sent' })).items;
        expect(sent.map(({ id, state, peering }) => ({ id, state, peering }))).toEqual(
          received.map(({ id, state, peering }) => ({ id, state, peering })),
        );
        const made = received.flatMap(({ peering }) => (peering === undefined ? [] : [peering]));
        for (const caller of [acme, bolt])
          expect((await control.peerings.list(caller)).items.map(({ id }) => id)).toEqual(made);
        for (const id of made) await clusters.untilPhase(id, 'Ready');
      }
    }
  }
});

test('a cluster that leaves takes its entry along, and a pending request for it cannot be approved', async () => {
  const { control, request } = await requested();
  await control.clusters.remove(bolt, 'milan');
  expect((await control.directory.list(acme)).items).toEqual([]);
  await expect(control.requests.approve(bolt, request.id)).rejects.toMatchObject({ code: 'cluster_unknown' });
});
