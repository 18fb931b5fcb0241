/** Requests with an Idempotency-Key, repeated after the broker died at each of its writes: one change, and the answer of the first attempt. */
import { describe, expect, test } from 'vitest';
import { key } from '#control/store/keys.ts';
import { givenUp, moveOps } from '#control/webhooks/deliveries.ts';
import type { DeliveryRecord } from '#control/webhooks/records.ts';
import { createRouter } from '#functions/local/gateway-router.ts';
import { httpFunctions } from '#functions/routes.ts';
import {
  type Asked,
  askedTwice,
  createDyingBroker,
  type DyingBroker,
  type Moment,
  moments,
  post,
  providerUrl,
  type Sender,
} from '#functions/testing/dying-broker.ts';

interface Case {
  readonly what: string;
  /** Of the audit record that there must be one of. */
  readonly action: string;
  /** Default `acme`. */
  readonly by?: Sender;
  /** Whose record that is. Default `acme`. */
  readonly audited?: Sender | 'new';
  /** Makes what has to be there before. */
  readonly asks: (broker: DyingBroker) => Asked | Promise<Asked>;
}

const ask =
  (path: string, body: object = {}) =>
  (): Asked => ({ path, body });

const publish = (b: DyingBroker) => post(b, 'bolt', '/v1/directory', { cluster: 'turin' });
const wanted = { consumer: 'rome', providerTenant: 'bolt', provider: 'turin' };
const pair = { consumer: 'rome', provider: 'milan' };

async function requested(b: DyingBroker): Promise<string> {
  await publish(b);
  return `/v1/requests/${(await post(b, 'acme', '/v1/requests', wanted)).id}`;
}

const cases: readonly Case[] = [
  { what: 'an API key', action: 'api-key.create', asks: ask('/v1/keys', { name: 'ci', role: 'viewer' }) },
  {
    what: 'a rotation',
    action: 'api-key.rotate',
    asks: async (b) => {
      const { key } = await post(b, 'acme', '/v1/keys', { name: 'x', role: 'viewer' });
      return { path: `/v1/keys/${key.id}/rotate` };
    },
  },
  { what: 'an invitation', action: 'invitation.create', asks: ask('/v1/invitations', { cluster: 'rome' }) },
  {
    what: 'a redemption',
    action: 'peering.request',
    asks: async (b) => {
      const { code } = await post(b, 'bolt', '/v1/invitations', { cluster: 'turin' });
      return { path: '/v1/invitations/redeem', body: { consumer: 'rome', code } };
    },
  },
  { what: 'a join token', action: 'cluster.create-join-token', asks: ask('/v1/join-tokens', { cluster: 'pisa' }) },
  { what: 'a peering', action: 'peering.request', asks: ask('/v1/peerings', pair) },
  {
    what: 'a changed peering with other labels',
    action: 'peering.change',
    asks: async (b) => {
      await post(b, 'acme', '/v1/peerings', { ...pair, resources: { cpu: '1' } });
      return { path: '/v1/peerings', body: { ...pair, resources: { cpu: '2' }, labels: { team: 'shop' } } };
    },
  },
  {
    what: 'an approval rule',
    action: 'approval-rule.create',
    asks: ask('/v1/approval-rules', { name: 'r', tenants: ['bolt'] }),
  },
  { what: 'a member', action: 'member.add', asks: ask('/v1/members', { email: 'a@b.example', role: 'viewer' }) },
  {
    what: 'an identity provider',
    action: 'issuer.register',
    asks: ask('/v1/issuers', { url: providerUrl, audience: 'isthmus' }),
  },
  { what: 'a directory entry', action: 'directory.publish', asks: ask('/v1/directory', { cluster: 'rome' }) },
  {
    what: 'a request to another tenant',
    action: 'request.ask',
    asks: async (b) => {
      await publish(b);
      return { path: '/v1/requests', body: wanted };
    },
  },
  {
    what: 'an approval',
    action: 'request.approve',
    by: 'bolt',
    audited: 'bolt',
    asks: async (b) => ({ path: `${await requested(b)}/approve` }),
  },
  {
    what: 'a rejection',
    action: 'request.reject',
    by: 'bolt',
    audited: 'bolt',
    asks: async (b) => ({ path: `${await requested(b)}/reject` }),
  },
  { what: 'the wish to delete a tenant', action: 'tenant.request-deletion', asks: ask('/v1/tenant/deletion') },
  {
    what: 'a tenant',
    action: 'tenant.create',
    by: 'operator',
    audited: 'new',
    asks: ask('/v1/tenants', { name: 'new' }),
  },
  {
    what: 'a recovery',
    action: 'tenant.recover',
    by: 'operator',
    asks: ask('/v1/tenants/acme/recovery', { reason: 'the key is lost' }),
  },
  ...ofReceiver({
    what: 'a webhook',
    kind: 'webhook',
    path: '/v1/webhooks',
    body: { url: 'https://hook.example/x', types: ['*'] },
    idOf: ({ webhook }) => webhook?.id,
  }),
  {
    what: 'a new secret of a webhook',
    action: 'webhook.rotate',
    asks: async (b) => {
      const { webhook } = await post(b, 'acme', '/v1/webhooks', { url: 'https://hook.example/x', types: ['*'] });
      return { path: `/v1/webhooks/${webhook.id}/rotate` };
    },
  },
  ...ofReceiver({
    what: 'an event target',
    kind: 'event-target',
    path: '/v1/event-targets',
    body: {
      arn: 'arn:aws:sqs:eu-central-1:123456789012:q',
      roleArn: 'arn:aws:iam::123456789012:role/isthmus-events-q',
      types: ['*'],
    },
    idOf: ({ id }) => id,
  }),
];

interface Receiver {
  readonly what: string;
  readonly kind: 'webhook' | 'event-target';
  readonly path: string;
  readonly body: object;
  readonly idOf: (made: { readonly id?: string; readonly webhook?: { readonly id: string } }) => string | undefined;
}

/** What is asked of webhooks and of event targets alike. */
function ofReceiver({ what, kind, path, body, idOf }: Receiver): readonly Case[] {
  const make = async (b: DyingBroker): Promise<string> => idOf(await post(b, 'acme', path, body)) ?? '';
  /** The id of a delivery to that receiver. */
  const deliver = async (b: DyingBroker, id: string): Promise<string> =>
    (await post(b, 'acme', `${path}/${id}/test`)).id;
  return [
    { what, action: `${kind}.create`, asks: ask(path, body) },
    {
      what: `a test of ${what}`,
      action: `${kind}.test`,
      asks: async (b) => ({ path: `${path}/${await make(b)}/test` }),
    },
    {
      what: `a replay of a delivery to ${what}`,
      action: `${kind}.replay`,
      asks: async (b) => {
        const id = await make(b);
        return { path: `${path}/${id}/deliveries/${await deliver(b, id)}/replay` };
      },
    },
    {
      what: `a replay of dead deliveries to ${what}`,
      action: `${kind}.replay`,
      asks: async (b) => {
        const id = await make(b);
        const { pk, sk } = key.delivery('acme', id, await deliver(b, id));
        const found = await b.store.get<DeliveryRecord>(pk, sk);
        if (!found) throw new Error('there is no delivery');
        const value = givenUp(found.value, b.clock.now(), 'by the test');
        await b.store.transact(moveOps({ tenant: 'acme', now: b.clock.now() }, found, value));
        return { path: `${path}/${id}/replay` };
      },
    },
  ];
}

describe.each(cases)('$what', ({ asks, by = 'acme', action, audited = 'acme' }) => {
  async function attempts(dying: number, when: Moment) {
    const b = await createDyingBroker();
    const asked = await asks(b);
    const made = async (): Promise<number> => {
      const { items } = await b.store.query<{ action: string }>({ partition: `t/${audited}/audit`, limit: 500 });
      return items.filter(({ value }) => value.action === action).length;
    };
    const madeBefore = await made();
    const outcome = await askedTwice(b, by, asked, dying, when);
    return { ...outcome, made: (await made()) - madeBefore };
  }

  test('is made once and answered alike, whenever the broker died meanwhile', async () => {
    const alive = await attempts(0, 'after');
    expect(alive.first.status, alive.first.text).toBeLessThan(300);
    expect([alive.again.status, alive.again.body, alive.made]).toEqual([alive.first.status, alive.first.body, 1]);
    for (let write = 1; write <= alive.writes; write += 1) {
      for (const when of moments) {
        const { again, made, died } = await attempts(write, when);
        expect([write, when, died, again.status, made]).toEqual([write, when, true, alive.first.status, 1]);
      }
    }
  });
});

test('every POST that takes an Idempotency-Key is among these', async () => {
  const route = createRouter(httpFunctions);
  // The last one: deletion.test.ts.
  const covered = ['POST /v1/tenant/deletion/confirm'];
  for (const { asks } of cases) covered.push(route('POST', (await asks(await createDyingBroker())).path).routeKey);
  const all = httpFunctions
    .map(({ route: { method, path, auth } }) => ({ method, auth, name: `${method} ${path}` }))
    .filter(({ method, auth }) => method === 'POST' && (auth === 'key' || auth === 'operator'));
  expect(all.map(({ name }) => name).filter((name) => !covered.includes(name))).toEqual([]);
});

test('a key that is lost is replaced by the operator, and the tenant can see that', async () => {
  const { fixture, keys } = await createDyingBroker();
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
