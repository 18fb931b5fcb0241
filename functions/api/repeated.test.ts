/** Requests with an Idempotency-Key, repeated after the broker died at each of its writes: one change, and the answer of the first attempt. */
import { describe, expect, test } from 'vitest';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import { key } from '#control/store/keys.ts';
import { createFaultyStore } from '#control/testing/faulty-store.ts';
import { givenUp, moveOps } from '#control/webhooks/deliveries.ts';
import type { DeliveryRecord } from '#control/webhooks/records.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';
import { ManualClock } from '#shared/ports/clock.ts';

/** A broker whose process can die, with two tenants and a cluster of each. */
async function broker() {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const store = createMemoryStore({ clock });
  const faulty = createFaultyStore();
  const fixture = await createApiFixture({ clock, store: faulty.wrap(store) });
  const [acme, bolt] = [await fixture.tenant('acme'), await fixture.tenant('bolt')];
  await fixture.join({ tenant: 'acme', key: acme, cluster: 'rome' });
  await fixture.join({ tenant: 'acme', key: acme, cluster: 'milan' });
  await fixture.join({ tenant: 'bolt', key: bolt, cluster: 'turin' });
  return { fixture, clock, store, faulty, keys: { acme, bolt, operator: fixture.operatorKey } };
}

type Broker = Awaited<ReturnType<typeof broker>>;
interface Case {
  readonly what: string;
  readonly path: string;
  readonly by?: 'acme' | 'bolt' | 'operator';
  readonly body: object;
  /** What is made before, and what goes into the path or the body. */
  readonly prepare?: (broker: Broker) => Promise<{ readonly path?: string; readonly body?: object }>;
  /** The audit record that there must be one of. */
  readonly action: string;
  readonly audited?: 'acme' | 'bolt' | 'new';
}

const post = async (b: Broker, by: 'acme' | 'bolt', path: string, body: object) =>
  (await b.fixture.call({ method: 'POST', path, key: b.keys[by], body })).body;
const hook = { url: 'https://hook.example/x', types: ['*'] };
const target = {
  arn: 'arn:aws:sqs:eu-central-1:123456789012:q',
  roleArn: 'arn:aws:iam::123456789012:role/isthmus-events-q',
  types: ['*'],
};
const publish = (b: Broker) => post(b, 'bolt', '/v1/directory', { cluster: 'turin' });
const wanted = { consumer: 'rome', providerTenant: 'bolt', provider: 'turin' };

const cases: readonly Case[] = [
  { what: 'an API key', path: '/v1/keys', body: { name: 'ci', role: 'viewer' }, action: 'api-key.create' },
  {
    what: 'a rotation',
    path: '',
    body: {},
    prepare: async (b) => ({
      path: `/v1/keys/${(await post(b, 'acme', '/v1/keys', { name: 'x', role: 'viewer' })).key.id}/rotate`,
    }),
    action: 'api-key.rotate',
  },
  { what: 'an invitation', path: '/v1/invitations', body: { cluster: 'rome' }, action: 'invitation.create' },
  {
    what: 'a redemption',
    path: '/v1/invitations/redeem',
    body: {},
    prepare: async (b) => ({
      body: { consumer: 'rome', code: (await post(b, 'bolt', '/v1/invitations', { cluster: 'turin' })).code },
    }),
    action: 'peering.request',
  },
  { what: 'a join token', path: '/v1/join-tokens', body: { cluster: 'pisa' }, action: 'cluster.create-join-token' },
  { what: 'a peering', path: '/v1/peerings', body: { consumer: 'rome', provider: 'milan' }, action: 'peering.request' },
  { what: 'a webhook', path: '/v1/webhooks', body: hook, action: 'webhook.create' },
  {
    what: 'a new secret of a webhook',
    path: '',
    body: {},
    prepare: async (b) => ({ path: `/v1/webhooks/${(await post(b, 'acme', '/v1/webhooks', hook)).webhook.id}/rotate` }),
    action: 'webhook.rotate',
  },
  {
    what: 'a test of a webhook',
    path: '',
    body: {},
    prepare: async (b) => ({ path: `/v1/webhooks/${(await post(b, 'acme', '/v1/webhooks', hook)).webhook.id}/test` }),
    action: 'webhook.test',
  },
  { what: 'an event target', path: '/v1/event-targets', body: target, action: 'event-target.create' },
  {
    what: 'an approval rule',
    path: '/v1/approval-rules',
    body: { name: 'r', tenants: ['bolt'] },
    action: 'approval-rule.create',
  },
  { what: 'a member', path: '/v1/members', body: { email: 'a@b.example', role: 'viewer' }, action: 'member.add' },
  { what: 'a directory entry', path: '/v1/directory', body: { cluster: 'rome' }, action: 'directory.publish' },
  {
    what: 'a request to another tenant',
    path: '/v1/requests',
    body: wanted,
    prepare: async (b) => {
      await publish(b);
      return {};
    },
    action: 'request.ask',
  },
  {
    what: 'an approval',
    path: '',
    by: 'bolt',
    body: {},
    prepare: async (b) => {
      await publish(b);
      return { path: `/v1/requests/${(await post(b, 'acme', '/v1/requests', wanted)).id}/approve` };
    },
    action: 'request.approve',
    audited: 'bolt',
  },
  {
    what: 'a rejection',
    path: '',
    by: 'bolt',
    body: {},
    prepare: async (b) => {
      await publish(b);
      return { path: `/v1/requests/${(await post(b, 'acme', '/v1/requests', wanted)).id}/reject` };
    },
    action: 'request.reject',
    audited: 'bolt',
  },
  {
    what: 'a changed peering with other labels',
    path: '/v1/peerings',
    body: { consumer: 'rome', provider: 'milan', resources: { cpu: '2' }, labels: { team: 'shop' } },
    prepare: async (b) => {
      const body = { consumer: 'rome', provider: 'milan', resources: { cpu: '1' } };
      await post(b, 'acme', '/v1/peerings', body);
      return {};
    },
    action: 'peering.change',
  },
  {
    what: 'a test of an event target',
    path: '',
    body: {},
    prepare: async (b) => ({
      path: `/v1/event-targets/${(await post(b, 'acme', '/v1/event-targets', target)).id}/test`,
    }),
    action: 'event-target.test',
  },
  {
    what: 'a replay of a delivery',
    path: '',
    body: {},
    prepare: async (b) => {
      const { webhook } = await post(b, 'acme', '/v1/webhooks', hook);
      const { id } = await post(b, 'acme', `/v1/webhooks/${webhook.id}/test`, {});
      return { path: `/v1/webhooks/${webhook.id}/deliveries/${id}/replay` };
    },
    action: 'webhook.replay',
  },
  {
    what: 'a replay of dead deliveries',
    path: '',
    body: {},
    prepare: async (b) => {
      const { webhook } = await post(b, 'acme', '/v1/webhooks', hook);
      const { id } = await post(b, 'acme', `/v1/webhooks/${webhook.id}/test`, {});
      const { pk, sk } = key.delivery('acme', webhook.id, id);
      const found = await b.store.get<DeliveryRecord>(pk, sk);
      if (!found) throw new Error('there is no delivery');
      const value = givenUp(found.value, b.clock.now(), 'by the test');
      await b.store.transact(moveOps({ tenant: 'acme', now: b.clock.now() }, found, value));
      return { path: `/v1/webhooks/${webhook.id}/replay` };
    },
    action: 'webhook.replay',
  },
  {
    what: 'the wish to delete a tenant',
    path: '/v1/tenant/deletion',
    body: {},
    action: 'tenant.request-deletion',
  },
  {
    what: 'a tenant',
    path: '/v1/tenants',
    by: 'operator',
    body: { name: 'new' },
    action: 'tenant.create',
    audited: 'new',
  },
  {
    what: 'a recovery',
    path: '/v1/tenants/acme/recovery',
    by: 'operator',
    body: { reason: 'the key is lost' },
    action: 'tenant.recover',
  },
];

describe.each(cases)('$what', ({ path, by = 'acme', body, prepare, action, audited = 'acme' }) => {
  async function attempts(dying: number, when: 'before' | 'after') {
    const b = await broker();
    const more = (await prepare?.(b)) ?? {};
    const call = {
      method: 'POST',
      path: more.path ?? path,
      key: b.keys[by],
      body: more.body ?? body,
      headers: { 'idempotency-key': 'one' },
    };
    const made = async (): Promise<number> => {
      const { items } = await b.store.query<{ action: string }>({ partition: `t/${audited}/audit`, limit: 500 });
      return items.filter(({ value }) => value.action === action).length;
    };
    const madeBefore = await made();
    b.faulty.fault.when = when;
    b.faulty.fault.in = dying;
    const before = b.faulty.writes.count;
    const first = await b.fixture.call(call);
    const died = b.faulty.fault.in === 0 && dying > 0;
    b.faulty.fault.in = 0;
    const writes = b.faulty.writes.count - before;
    // Beyond the lease of a claim, in another process.
    b.clock.advance(61_000);
    const next = await createApiFixture({ clock: b.clock, store: b.store });
    const again = await next.call(call);
    return { first, again, died, writes, made: (await made()) - madeBefore };
  }

  test('is made once and answered alike, whenever the broker died meanwhile', async () => {
    const alive = await attempts(0, 'after');
    expect(alive.first.status, alive.first.text).toBeLessThan(300);
    expect([alive.again.status, alive.again.body, alive.made]).toEqual([alive.first.status, alive.first.body, 1]);
    for (let write = 1; write <= alive.writes; write += 1) {
      for (const when of ['before', 'after'] as const) {
        const { again, made, died } = await attempts(write, when);
        expect([write, when, died, again.status, made]).toEqual([write, when, true, alive.first.status, 1]);
      }
    }
  });
});

test('a key that is lost is replaced by the operator, and the tenant can see that', async () => {
  const { fixture, keys } = await broker();
  const recover = (key: string) =>
    fixture.call({ method: 'POST', path: '/v1/tenants/acme/recovery', key, body: { reason: 'ticket 4711' } });
  expect((await recover(keys.acme)).status).toBe(404);
  const { status, body } = await recover(keys.operator);
  expect([status, body.key.role]).toEqual([201, 'admin']);
  const audit = await fixture.call({ method: 'GET', path: '/v1/audit?limit=1', key: body.secret });
  expect(audit.body.items[0]).toMatchObject({
    action: 'tenant.recover',
    principal: expect.stringMatching(/^operator\/ok_/),
    after: { reason: 'ticket 4711' },
  });
  fixture.clock.advance(86_400_000);
  expect((await fixture.call({ method: 'GET', path: '/v1/audit', key: body.secret })).status).toBe(401);
});
