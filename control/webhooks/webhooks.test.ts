import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf } from '#shared/errors/app-error.ts';
import { FeedEvent } from '#shared/schema/api/resources.ts';
import { adminOf, origin } from '../testing/broker-clusters.ts';
import { failingLimitMs, retryDelaysMs } from './schedule.ts';
import { createWebhookFixture, hook, ok, verifies, type WebhookFixture } from './testing/webhook-fixture.ts';

const admin = adminOf('default');
const tokens = ['cluster.join-token-created'];
const hour = 3_600_000;

let w: WebhookFixture;
beforeEach(async () => {
  w = await createWebhookFixture();
});
const webhooks = () => w.world.control.webhooks;
const make = (types: readonly string[] = tokens) => webhooks().create(admin, { url: hook, types });
const deliveryOf = (webhook: string, id: string) => webhooks().deliveries.get(admin, webhook, id);
const eventTypes = async () => (await w.world.control.events.list(admin, { limit: 200 })).items.map(({ type }) => type);

describe('a webhook', () => {
  test('gets each event it asks for once, as a signed CloudEvent', async () => {
    const { secret } = await make();
    const id = await w.happen();
    await w.settle();
    await w.settle();
    expect(w.received).toHaveLength(1);
    const [post] = w.received;
    const event = FeedEvent.parse(JSON.parse(post!.body));
    expect(event).toMatchObject({ id, type: 'dev.isthmus.cluster.join-token-created.v1', subject: 'cluster/c1' });
    expect(event.data.expiresAt).toMatch(/^2026-01-01T/);
    expect(post).toMatchObject({ url: hook, headers: { 'webhook-id': id } });
    expect(post!.headers['webhook-timestamp']).toBe(String(w.clock.now() / 1_000));
    expect(verifies(secret, post!)).toBe(true);
  });

  test.each([
    { types: ['*'], gets: true },
    { types: ['cluster.*'], gets: true },
    { types: ['dev.isthmus.cluster.*'], gets: true },
    { types: ['dev.isthmus.cluster.join-token-created.v1'], gets: true },
    { types: ['peering.*', 'cluster.left'], gets: false },
  ])('of types $types gets it: $gets', async ({ types, gets }) => {
    await make(types);
    const id = await w.happen();
    await w.settle();
    expect(w.received.some(({ headers }) => headers['webhook-id'] === id)).toBe(gets);
  });

  test.each([
    { types: [], code: 'invalid_input' },
    { types: ['cluster.observed'], code: 'event_type_unknown' },
    { types: ['nothing.*'], code: 'event_type_unknown' },
    { types: ['webhook.due'], code: 'event_type_unknown' },
    { types: Array.from({ length: 51 }, () => '*'), code: 'invalid_input' },
  ])('of types $types is refused', async ({ types, code }) => {
    await expect(make(types)).rejects.toMatchObject({ code, detail: { field: 'types' } });
  });

  test('at a refused URL is refused, and the error does not repeat the URL', async () => {
    const refused = webhooks().create(admin, { url: 'http://hook.example/?token=abc', types: ['*'] });
    await expect(refused).rejects.toMatchObject({ code: 'url_refused', detail: { field: 'url' } });
    expect(JSON.stringify(await refused.catch((error: unknown) => [String(error), error]))).not.toContain('abc');
  });

  test('is neither made, pointed elsewhere nor sent anything again by a key that may not read events', async () => {
    const { webhook } = await make();
    const blind = { ...admin, scopes: ['webhooks:write', 'webhooks:read'] as const };
    const { create, change, deliveries } = webhooks();
    const refused = { code: 'forbidden', message: expect.stringContaining('events:read') };
    await expect(create(blind, { url: 'https://hook.example/x', types: ['*'] })).rejects.toMatchObject(refused);
    await expect(change(blind, webhook.id, { url: 'https://hook.example/y' })).rejects.toMatchObject(refused);
    await expect(deliveries.replay(blind, webhook.id, 'ev_1')).rejects.toMatchObject(refused);
    await expect(deliveries.replayDead(blind, webhook.id)).rejects.toMatchObject(refused);
  });

  test('gets nothing of before it was made', async () => {
    await w.happen();
    w.clock.advance(1);
    await make();
    await w.settle();
    expect(w.received).toEqual([]);
  });

  test('is one of twenty at most', async () => {
    for (let i = 0; i < 20; i += 1) await make();
    await expect(make()).rejects.toMatchObject({ code: 'limit_reached' });
  });

  test('that is deleted gets nothing, not even what waited', async () => {
    w.answer(() => ({ status: 500, text: '' }));
    const { webhook } = await make();
    await w.happen();
    await w.settle();
    await webhooks().delete(admin, webhook.id);
    await w.pass(6 * hour, hour);
    expect(w.received).toHaveLength(1);
    await expect(webhooks().get(admin, webhook.id)).rejects.toMatchObject({ code: 'not_found' });
    await expect(webhooks().deliveries.list(admin, webhook.id)).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('what fails', () => {
  test.each([
    { what: 'a status', outcome: { status: 500, text: 'oops' } },
    { what: 'a redirect', outcome: { status: 302, text: '' } },
    { what: 'no answer', outcome: { error: 'no answer within 10 s' } },
  ])('by $what is tried again until it is taken, with the same id and body', async ({ outcome }) => {
    const { webhook, secret } = await make();
    w.answer(() => outcome);
    const id = await w.happen();
    await w.pass(10_000, 1_000);
    w.answer(() => ok);
    await w.pass(hour);
    expect(w.received).toHaveLength(3);
    expect(new Set(w.received.map(({ headers, body }) => headers['webhook-id'] + body)).size).toBe(1);
    expect(w.received.every((post) => verifies(secret, post))).toBe(true);
    expect(await deliveryOf(webhook.id, id)).toMatchObject({ state: 'delivered', attempts: 3, last: { status: 200 } });
  });

  test('follows the schedule for three days and becomes a dead letter', async () => {
    const { webhook } = await make();
    w.answer(() => ({ status: 503, text: 'busy' }));
    const id = await w.happen();
    await w.settle();
    await w.pass(60_000, 1_000);
    await w.pass(90 * hour);
    expect(w.received).toHaveLength(retryDelaysMs.length + 1);
    const pauses = w.received.slice(1).map(({ at }, i) => at - (w.received[i]?.at ?? 0));
    for (const [i, pause] of pauses.entries()) {
      const planned = retryDelaysMs[i] ?? 0;
      expect(pause).toBeGreaterThanOrEqual(planned * 0.8);
      // What is due is noticed a minute later at most.
      expect(pause).toBeLessThanOrEqual(planned * 1.2 + 60_000);
    }
    expect(await deliveryOf(webhook.id, id)).toMatchObject({ state: 'dead', last: { status: 503, answer: 'busy' } });
    const { items } = await webhooks().deliveries.list(admin, webhook.id, { state: 'dead' });
    expect(items.map((one) => one.id)).toEqual([id]);
    expect((await webhooks().deliveries.list(admin, webhook.id, { state: 'delivered' })).items).toEqual([]);
  });

  test('waits as long as the receiver asked', async () => {
    await make();
    w.answer(() => ({ status: 429, text: '', retryAfterMs: 2 * hour }));
    await w.happen();
    await w.settle();
    await w.pass(2 * hour - 60_000);
    expect(w.received).toHaveLength(1);
    await w.pass(120_000);
    expect(w.received).toHaveLength(2);
  });

  test('at one webhook delays no other', async () => {
    await make();
    await webhooks().create(admin, { url: 'https://other.example/', types: tokens });
    w.answer(({ url }) => (url === hook ? new Promise(() => undefined) : ok));
    await w.happen();
    void w.settle();
    await expect
      .poll(() => w.received.map(({ url }) => url).sort(), { timeout: 30_000 })
      .toEqual([hook, 'https://other.example/']);
  });

  test('for days without one success disables the webhook, once, with an event; enabling resets the count', async () => {
    const { webhook } = await make();
    w.answer(() => ({ status: 500, text: '' }));
    await w.happen();
    await w.settle();
    expect((await webhooks().get(admin, webhook.id)).failingSince).toBe(w.clock.now());
    for (let day = 0; day * 24 * hour < failingLimitMs; day += 1) {
      await w.pass(24 * hour, hour);
      await w.happen();
      await w.settle();
    }
    expect((await webhooks().get(admin, webhook.id)).disabled?.reason).toContain(
      'every delivery failed since 2026-01-01',
    );
    expect((await eventTypes()).filter((type) => type === 'webhook.disabled')).toHaveLength(1);
    const before = w.received.length;
    await w.happen();
    await w.pass(80 * hour, hour);
    expect(w.received).toHaveLength(before);
    const { items } = await webhooks().deliveries.list(admin, webhook.id, { limit: 200 });
    expect(new Set(items.map(({ state }) => state))).toEqual(new Set(['dead']));
    await expect(webhooks().deliveries.replayDead(admin, webhook.id)).rejects.toMatchObject({
      code: 'webhook_disabled',
    });

    w.answer(() => ok);
    const enabled = await webhooks().change(admin, webhook.id, { enabled: true });
    expect([enabled.disabled, enabled.failingSince]).toEqual([undefined, undefined]);
    expect(await eventTypes()).toContain('webhook.enabled');
    const { replayed } = await webhooks().deliveries.replayDead(admin, webhook.id);
    expect(replayed).toBe(items.length);
    await w.settle();
    expect(w.received.length - before).toBe(items.length);
  });

  test('410 disables the webhook at once', async () => {
    const { webhook } = await make();
    w.answer(() => ({ status: 410, text: '' }));
    await w.happen();
    await w.settle();
    expect((await webhooks().get(admin, webhook.id)).disabled?.reason).toContain('410');
  });

  test('one success in between forgets the failures', async () => {
    const { webhook } = await make();
    w.answer(() => ({ status: 500, text: '' }));
    await w.happen();
    await w.settle();
    w.answer(() => ok);
    await w.happen();
    await w.settle();
    expect((await webhooks().get(admin, webhook.id)).failingSince).toBeUndefined();
  });
});

describe('rotation', () => {
  test('signs with both secrets during the overlap and with the new one after it', async () => {
    const { webhook, secret: old } = await make();
    const { secret: fresh, webhook: rotated } = await webhooks().rotate(admin, webhook.id, 3_600);
    expect(rotated.oldSecretExpiresAt).toBe(w.clock.now() + hour);
    await w.happen();
    await w.settle();
    expect([old, fresh].map((secret) => verifies(secret, w.received[0]!))).toEqual([true, true]);
    expect(w.received[0]!.headers['webhook-signature']!.split(' ')).toHaveLength(2);
    w.clock.advance(hour);
    await w.happen();
    await w.settle();
    expect([old, fresh].map((secret) => verifies(secret, w.received[1]!))).toEqual([false, true]);
  });

  test('without overlap ends the old secret at once', async () => {
    const { webhook, secret: old } = await make();
    const { secret: fresh } = await webhooks().rotate(admin, webhook.id, 0);
    await w.happen();
    await w.settle();
    expect([old, fresh].map((secret) => verifies(secret, w.received[0]!))).toEqual([false, true]);
  });
});

describe('a replay', () => {
  test('of a delivered event sends it again under the same id', async () => {
    const { webhook } = await make();
    const id = await w.happen();
    await w.settle();
    await webhooks().deliveries.replay(admin, webhook.id, id);
    await w.settle();
    expect(w.received.map(({ headers }) => headers['webhook-id'])).toEqual([id, id]);
  });

  test('of many dead letters goes on with its cursor until all are sent', async () => {
    const { webhook } = await make();
    w.answer(() => ({ status: 500, text: '' }));
    for (let i = 0; i < 75; i += 1) await w.happen();
    await w.settle();
    await w.pass(100 * hour, hour);
    w.answer(() => ok);
    const before = w.received.length;
    let cursor: string | undefined;
    let count = 0;
    do {
      const page = await webhooks().deliveries.replayDead(admin, webhook.id, cursor);
      count += page.replayed;
      cursor = page.cursor;
    } while (cursor !== undefined);
    await w.settle();
    expect([count, w.received.length - before]).toEqual([75, 75]);
  });
});

describe('a test', () => {
  test('reaches this webhook only, regardless of its event types, and is in no feed', async () => {
    const { webhook } = await make(['peering.*']);
    await webhooks().create(admin, { url: 'https://other.example/', types: ['*'] });
    const { id } = await webhooks().deliveries.test(admin, webhook.id);
    await w.settle();
    const tests = w.received.filter(({ body }) => body.includes('dev.isthmus.webhook.test.v1'));
    expect(tests.map(({ url }) => url)).toEqual([hook]);
    expect((await deliveryOf(webhook.id, id)).state).toBe('delivered');
    expect(await eventTypes()).not.toContain('webhook.test');
  });

  test('that fails is not repeated and does not count as failing', async () => {
    const { webhook } = await make();
    w.answer(() => ({ error: 'connect ECONNREFUSED' }));
    const { id } = await webhooks().deliveries.test(admin, webhook.id);
    await w.settle();
    expect(await deliveryOf(webhook.id, id)).toMatchObject({ state: 'dead', attempts: 1 });
    expect((await webhooks().get(admin, webhook.id)).failingSince).toBeUndefined();
  });
});

test('tenants see nothing of each other', async () => {
  await w.world.control.tenants.bootstrap('bolt', origin);
  const bolt = adminOf('bolt');
  const { webhook } = await make(['*']);
  const mine = await w.happen();
  await w.settle();
  const theirs = await w.happen('bolt');
  await w.settle();
  expect(w.received.some(({ headers }) => headers['webhook-id'] === theirs)).toBe(false);
  expect(w.received.every(({ body }) => JSON.parse(body).source.endsWith('/tenants/default'))).toBe(true);
  const attempts = [
    () => webhooks().get(bolt, webhook.id),
    () => webhooks().delete(bolt, webhook.id),
    () => webhooks().rotate(bolt, webhook.id, 0),
    () => webhooks().change(bolt, webhook.id, { enabled: false }),
    () => webhooks().deliveries.list(bolt, webhook.id),
    () => webhooks().deliveries.get(bolt, webhook.id, mine),
    () => webhooks().deliveries.replay(bolt, webhook.id, mine),
    () => webhooks().deliveries.replayDead(bolt, webhook.id),
    () => webhooks().deliveries.test(bolt, webhook.id),
  ];
  for (const attempt of attempts) {
    expect(codeOf(await attempt().catch((error: unknown) => error))).toBe('not_found');
  }
  expect((await webhooks().list(bolt)).items).toEqual([]);
});

test('a broker without a key for secrets has no webhooks, and says so', async () => {
  const { createBrokerClusters } = await import('../testing/broker-clusters.ts');
  const { control } = createBrokerClusters();
  await expect(control.webhooks.create(admin, { url: hook, types: ['*'] })).rejects.toMatchObject({
    code: 'webhooks_unavailable',
  });
  expect((await control.webhooks.list(admin)).items).toEqual([]);
});

test('an export tells of webhooks and deliveries, and not what they sign with', async () => {
  const { webhook, secret } = await make();
  await webhooks().rotate(admin, webhook.id, 60);
  await w.happen();
  await w.settle();
  const lines: unknown[] = [];
  let cursor: string | undefined;
  do {
    const page = await w.world.control.tenants.export.page(admin, cursor);
    lines.push(...page.lines);
    cursor = page.cursor;
  } while (cursor !== undefined);
  const text = JSON.stringify(lines);
  expect(text).toContain('"kind":"webhook"');
  expect(text).toContain('"kind":"webhook-delivery"');
  expect(text).not.toContain(secret.slice(6));
  const stored = await w.store.get<{ secrets: { sealedSecret: string }[] }>('t/default/webhooks', webhook.id);
  expect(stored?.value.secrets).toHaveLength(2);
  for (const { sealedSecret } of stored?.value.secrets ?? []) expect(text).not.toContain(sealedSecret);
});
