import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf } from '#shared/errors/app-error.ts';
import { FeedEvent } from '#shared/schema/api/resources.ts';
import { adminOf, createBrokerClusters, origin } from '../testing/broker-clusters.ts';
import { countingReads } from '../testing/counting-store.ts';
import { failingLimitMs } from './schedule.ts';
import { createWebhookFixture, hook, ok, queueTarget, type WebhookFixture } from './testing/webhook-fixture.ts';

const admin = adminOf('default');
const hour = 3_600_000;

let w: WebhookFixture;
beforeEach(async () => {
  w = await createWebhookFixture();
});
const targets = () => w.world.control.eventTargets;
const make = (types: readonly string[] = ['cluster.join-token-created']) =>
  targets().create(admin, { ...queueTarget, types });

describe('an event target', () => {
  test('gets each event it asks for once, as a CloudEvent, by the role and with the external ID of its tenant', async () => {
    const target = await make();
    const id = await w.happen();
    await w.settle();
    await w.settle();
    expect(w.put).toHaveLength(1);
    const [message] = w.put;
    expect(message).toMatchObject({ ...queueTarget, tenant: 'default', externalId: 'isthmus/default' });
    const event = FeedEvent.parse(JSON.parse(message!.body));
    expect(event).toMatchObject({ id, type: 'dev.isthmus.cluster.join-token-created.v1', subject: 'cluster/c1' });
    expect(message!.event).toMatchObject({ id, type: event.type, subject: event.subject });
    expect(target).toMatchObject({ type: 'sqs', externalId: 'isthmus/default' });
    expect(target.principal).toMatch(/^arn:aws:iam::/);
    expect(await targets().deliveries.get(admin, target.id, id)).toMatchObject({
      state: 'delivered',
      receiver: target.id,
      last: { status: 200, answer: 'receipt' },
    });
  });

  test.each([
    { field: 'arn', change: { arn: 'arn:aws:sqs:eu-central-1:123456789012:*' } },
    { field: 'roleArn', change: { roleArn: 'arn:aws:iam::123456789012:role/admin' } },
    { field: 'roleArn', change: { roleArn: 'arn:aws:iam::999999999999:role/isthmus-events-ops' } },
    { field: 'roleArn', change: { roleArn: 'arn:aws-cn:iam::123456789012:role/isthmus-events-ops' } },
    { field: 'types', change: { types: [] } },
  ])('with $change is refused for its $field', async ({ field, change }) => {
    const made = targets().create(admin, { ...queueTarget, types: ['*'], ...change });
    await expect(made).rejects.toMatchObject({ code: 'invalid_input', detail: { field } });
  });

  test('cannot be given a role of another account later', async () => {
    const { id } = await make();
    const change = { roleArn: 'arn:aws:iam::999999999999:role/isthmus-events-ops' };
    await expect(targets().change(admin, id, change)).rejects.toMatchObject({ code: 'invalid_input' });
    const { roleArn, version } = await targets().change(admin, id, { roleArn: `${queueTarget.roleArn}2` });
    expect([roleArn, version]).toEqual([`${queueTarget.roleArn}2`, 2]);
    const stale = targets().change(admin, id, { enabled: false }, { ifVersion: 1 });
    await expect(stale).rejects.toMatchObject({ code: 'precondition_failed' });
  });

  test('is one of twenty at most, and no webhook counts against it', async () => {
    await w.world.control.webhooks.create(admin, { url: hook, types: ['*'] });
    for (let i = 0; i < 20; i += 1) await make();
    await expect(make()).rejects.toMatchObject({ code: 'limit_reached' });
    expect((await targets().list(admin, { limit: 200 })).items).toHaveLength(20);
    expect((await w.world.control.webhooks.list(admin)).items).toHaveLength(1);
  });

  test('is listed with nineteen others in two requests of the table, each with since when it fails', async () => {
    let counted: ReturnType<typeof countingReads> | undefined;
    w = await createWebhookFixture({
      wrap: (store) => {
        counted = countingReads(store);
        return counted.store;
      },
    });
    const arns = Array.from({ length: 20 }, (_, i) => `${queueTarget.arn}-${i}`);
    for (const arn of arns) await targets().create(admin, { ...queueTarget, arn, types: ['cluster.*'] });
    const failing = new Set(arns.slice(0, 7));
    w.answerPut(({ arn }) => (failing.has(arn) ? { status: 500, text: '' } : ok));
    await w.happen();
    await w.settle();
    const list = async () => (await targets().list(admin, { limit: 200 })).items;
    expect(await counted?.of(list)).toEqual({ requests: 2, items: 40 });
    const shown = (await list()).map(({ arn, failingSince }) => [arn, failingSince]);
    expect(Object.fromEntries(shown)).toEqual(
      Object.fromEntries(arns.map((arn) => [arn, failing.has(arn) ? w.clock.now() : undefined])),
    );
  });

  test('that fails is tried again until it takes the event', async () => {
    const { id } = await make();
    w.answerPut(() => ({ error: 'the role cannot be assumed (AccessDenied)' }));
    const event = await w.happen();
    await w.settle();
    expect((await targets().get(admin, id)).failingSince).toBe(w.clock.now());
    w.answerPut(() => ({ status: 200, text: 'receipt' }));
    await w.pass(10_000, 1_000);
    expect(w.put).toHaveLength(2);
    expect(await targets().deliveries.get(admin, id, event)).toMatchObject({ state: 'delivered', attempts: 2 });
    expect((await targets().get(admin, id)).failingSince).toBeUndefined();
  });

  test('gets no second attempt at what it would never accept, unless a member replays it', async () => {
    const { id } = await make();
    w.answerPut(() => ({ error: 'MalformedDetail', final: true }));
    const event = await w.happen();
    await w.pass(hour);
    expect(w.put).toHaveLength(1);
    expect(await targets().deliveries.get(admin, id, event)).toMatchObject({ state: 'dead', attempts: 1 });
    expect((await targets().get(admin, id)).failingSince).toBeUndefined();
    w.answerPut(() => ({ status: 200, text: 'receipt' }));
    expect(await targets().deliveries.replayDead(admin, id)).toEqual({ replayed: 1 });
    await w.settle();
    expect(w.put).toHaveLength(2);
  });

  test('that fails for days is disabled with an event and can be enabled again', async () => {
    const { id } = await make();
    w.answerPut(() => ({ error: 'AccessDenied' }));
    for (let day = 0; day * 24 * hour <= failingLimitMs; day += 1) {
      await w.happen();
      await w.settle();
      await w.pass(24 * hour, hour);
    }
    await expect(targets().deliveries.replayDead(admin, id)).rejects.toMatchObject({ code: 'event_target_disabled' });
    const types = (await w.world.control.events.list(admin, { limit: 200 })).items.map(({ type }) => type);
    expect(types.filter((type) => type === 'event-target.disabled')).toHaveLength(1);
    expect((await targets().change(admin, id, { enabled: true })).disabled).toBeUndefined();
  });

  test('is tested on demand, and only it gets the test', async () => {
    const { id } = await make(['peering.*']);
    await w.world.control.webhooks.create(admin, { url: hook, types: ['*'] });
    const delivery = await targets().deliveries.test(admin, id);
    await w.settle();
    expect(w.put.map(({ event }) => event.id)).toEqual([delivery.id]);
    expect(w.received.filter(({ body }) => body.includes('webhook.test'))).toEqual([]);
  });

  test('that is deleted gets nothing, not even what waited', async () => {
    const { id } = await make();
    w.answerPut(() => ({ error: 'AccessDenied' }));
    await w.happen();
    await w.settle();
    await targets().delete(admin, id);
    await w.pass(hour);
    expect(w.put).toHaveLength(1);
    await expect(targets().get(admin, id)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('stands in the audit log and in the export of its tenant', async () => {
    const { id } = await make();
    const { items } = await w.world.control.audit.list(admin, {});
    const record = items.find(({ action }) => action === 'event-target.create');
    expect(record).toMatchObject({ subject: `event-target/${id}`, after: queueTarget });
    const page = await w.world.control.tenants.export.page(admin);
    expect(page.lines).toContainEqual(expect.objectContaining({ kind: 'event-target', id }));
  });
});

test('an event target is no webhook, and a webhook is no event target', async () => {
  const { webhooks } = w.world.control;
  const target = await make();
  const { webhook } = await webhooks.create(admin, { url: hook, types: ['*'] });
  const attempts = [
    () => webhooks.get(admin, target.id),
    () => webhooks.rotate(admin, target.id, 0),
    () => webhooks.delete(admin, target.id),
    () => webhooks.deliveries.list(admin, target.id),
    () => targets().get(admin, webhook.id),
    () => targets().delete(admin, webhook.id),
    () => targets().deliveries.test(admin, webhook.id),
  ];
  for (const attempt of attempts) {
    expect(codeOf(await attempt().catch((error: unknown) => error))).toBe('not_found');
  }
});

test('tenants see nothing of each other, and the broker shows for each its own external ID', async () => {
  await w.world.control.tenants.bootstrap('bolt', origin);
  const bolt = adminOf('bolt');
  const { id } = await make(['*']);
  const theirs = await targets().create(bolt, { ...queueTarget, types: ['*'] });
  expect(theirs.externalId).toBe('isthmus/bolt');
  const event = await w.happen('bolt');
  await w.settle();
  const sent = w.put.filter((message) => message.event.id === event);
  expect(sent.map(({ externalId }) => externalId)).toEqual(['isthmus/bolt']);
  for (const attempt of [
    () => targets().get(bolt, id),
    () => targets().change(bolt, id, { enabled: false }),
    () => targets().delete(bolt, id),
    () => targets().deliveries.list(bolt, id),
  ]) {
    expect(codeOf(await attempt().catch((error: unknown) => error))).toBe('not_found');
  }
});

test('a broker without an identity at AWS has no event targets, and says what to use', async () => {
  const { control } = createBrokerClusters();
  await expect(control.eventTargets.create(admin, { ...queueTarget, types: ['*'] })).rejects.toMatchObject({
    code: 'event_targets_unavailable',
    message: expect.stringContaining('webhook'),
  });
});
