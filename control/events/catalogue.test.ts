import { describe, expect, test } from 'vitest';
import type { Store } from '#control/ports/store.ts';
import { FeedEvent } from '#shared/schema/api/resources.ts';
import type { NewEvent } from '../ports/store.ts';
import { adminOf, createBrokerClusters, origin } from '../testing/broker-clusters.ts';
import { createWebhookFixture, hook, queueTarget } from '../webhooks/testing/webhook-fixture.ts';
import { catalogue } from './catalogue.ts';
import { cloudEventOf, type DeliveredType, publicTypes, testType, typeName } from './cloud-event.ts';
import { isPublic } from './types.ts';

const broker = { url: 'https://broker.test' };
const rows = Object.entries(catalogue).map(([type, entry]) => ({ type: type as DeliveredType, ...entry }));

test('the catalogue has every public type, the test of webhooks, and nothing else', () => {
  expect(rows.map(({ type }) => type).sort()).toEqual([...publicTypes, testType].sort());
});

test('names are versioned and differ', () => {
  const names = rows.map(({ type }) => typeName(type));
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^dev\.isthmus\.[a-z-]+\.[a-z-]+\.v[1-9]\d*$/);
});

describe.each(rows)('$type', ({ type, subject, data, example }) => {
  test('has an example of its own schema, in an envelope of CloudEvents 1.0', () => {
    const event = cloudEventOf({ id: 'ev_1', stream: 'acme', type, subject, at: 0, data: example }, broker);
    expect(FeedEvent.parse(event)).toEqual(event);
    expect(data.parse(event.data)).toEqual(example);
  });
});

test('times are numbers inside and RFC 3339 outside, and nothing else changes', () => {
  const data = { at: 0, expiresAt: 1_000, combat: 5, cluster: 'rome', list: [1] };
  const event = cloudEventOf({ id: 'ev_1', stream: 'acme', type: 'cluster.left', subject: 's', at: 0, data }, broker);
  expect(event.data).toEqual({
    at: '1970-01-01T00:00:00.000Z',
    expiresAt: '1970-01-01T00:00:01.000Z',
    combat: 5,
    cluster: 'rome',
    list: [1],
  });
});

/** Every public event that is committed is as the catalogue says, or the test fails; which types there were. */
function listening(store: Store): { readonly store: Store; readonly seen: Set<string> } {
  const seen = new Set<string>();
  const check = (event: NewEvent): void => {
    if (!isPublic(event.type)) return;
    seen.add(event.type);
    const { data } = cloudEventOf(event, broker);
    catalogue[event.type as DeliveredType].data.parse(JSON.parse(JSON.stringify(data)));
  };
  return {
    seen,
    store: {
      ...store,
      async transact(ops, events = [], signal) {
        for (const event of events) check(event);
        return store.transact(ops, events, signal);
      },
    },
  };
}

test('what the broker says about its life is as the catalogue says', async () => {
  let heard: ReturnType<typeof listening> | undefined;
  const wrap = (store: Store): Store => {
    heard = listening(store);
    return heard.store;
  };
  const clusters = createBrokerClusters({ wrap });
  const { control } = clusters;
  const admin = adminOf('default');
  await clusters.join('rome');
  await clusters.join('milan');
  const { peering } = await control.peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: {} });
  await clusters.until(async () => (await control.peerings.get(admin, peering.id)).phase === 'Ready');
  await control.peerings.request(admin, { consumer: 'rome', provider: 'milan', resources: { cpu: '1' } });
  await control.peerings.label(admin, peering.id, { labels: { 'example.com/team': 'shop' } });
  await control.peerings.unpeer(admin, peering.id);
  await clusters.until(async () => (await control.peerings.get(admin, peering.id)).phase === 'Gone');
  const { key } = await control.tenants.createKey(admin, { name: 'ci', role: 'viewer' });
  const { key: next } = await control.tenants.rotateKey(admin, key.id, 0);
  await control.tenants.revokeKey(admin, next.id);
  const member = await control.tenants.members.add(admin, { email: 'a@b.example', role: 'viewer' });
  await control.tenants.members.change(admin, member.id, { role: 'operator' });
  await control.tenants.members.remove(admin, member.id);
  const { invitation } = await control.invitations.create(admin, { cluster: 'milan' });
  await control.invitations.revoke(admin, invitation.id);
  await control.directory.publish(admin, { cluster: 'milan', region: 'eu-1' });
  await control.tenants.bootstrap('bolt', origin);
  await clusters.join('oslo', { tenant: 'bolt' });
  const asked = { consumer: 'oslo', providerTenant: 'default', provider: 'milan', resources: {} };
  const sent = await control.requests.ask(adminOf('bolt'), asked);
  await control.requests.reject(admin, sent.request.id, 'no');
  const again = await control.requests.ask(adminOf('bolt'), asked);
  await control.requests.withdraw(adminOf('bolt'), again.request.id);
  const rule = await control.approvalRules.create(admin, { name: 'all', tenants: ['*'] });
  await control.approvalRules.delete(admin, rule.id);
  await control.clusters.label(admin, 'milan', { labels: { 'example.com/tier': 'gold' } });
  await control.directory.unpublish(admin, 'milan');
  await control.clusters.remove(admin, 'milan');
  expect([...(heard?.seen ?? [])].sort()).toEqual(
    [
      'api-key.created',
      'api-key.revoked',
      'api-key.rotated',
      'approval-rule.created',
      'approval-rule.deleted',
      'cluster.join-token-created',
      'cluster.joined',
      'cluster.labels-changed',
      'cluster.left',
      'directory.published',
      'directory.unpublished',
      'invitation.created',
      'invitation.revoked',
      'member.added',
      'member.changed',
      'member.removed',
      'peering.changed',
      'peering.labels-changed',
      'peering.phase-changed',
      'peering.requested',
      'peering.unpeer-requested',
      'request.received',
      'request.rejected',
      'request.sent',
      'request.withdrawn',
      'tenant.created',
    ].sort(),
  );
});

test('what it says about webhooks is as the catalogue says', async () => {
  let heard: ReturnType<typeof listening> | undefined;
  const w = await createWebhookFixture({
    wrap: (store) => {
      heard = listening(store);
      return heard.store;
    },
  });
  const { webhooks } = w.world.control;
  const admin = adminOf('default');
  const { webhook } = await webhooks.create(admin, { url: hook, types: ['*'] });
  await webhooks.change(admin, webhook.id, { types: ['peering.*'] });
  await webhooks.change(admin, webhook.id, { enabled: false });
  await webhooks.change(admin, webhook.id, { enabled: true });
  await webhooks.rotate(admin, webhook.id, 60);
  await webhooks.delete(admin, webhook.id);
  expect([...(heard?.seen ?? [])].filter((type) => type.startsWith('webhook.')).sort()).toEqual([
    'webhook.changed',
    'webhook.created',
    'webhook.deleted',
    'webhook.disabled',
    'webhook.enabled',
    'webhook.secret-rotated',
  ]);
});

test('what it says about event targets is as the catalogue says', async () => {
  let heard: ReturnType<typeof listening> | undefined;
  const w = await createWebhookFixture({
    wrap: (store) => {
      heard = listening(store);
      return heard.store;
    },
  });
  const { eventTargets } = w.world.control;
  const admin = adminOf('default');
  const { id } = await eventTargets.create(admin, { ...queueTarget, types: ['*'] });
  await eventTargets.change(admin, id, { types: ['peering.*'] });
  await eventTargets.change(admin, id, { enabled: false });
  await eventTargets.change(admin, id, { enabled: true });
  await eventTargets.delete(admin, id);
  expect([...(heard?.seen ?? [])].filter((type) => type.startsWith('event-target.')).sort()).toEqual([
    'event-target.changed',
    'event-target.created',
    'event-target.deleted',
    'event-target.disabled',
    'event-target.enabled',
  ]);
});
