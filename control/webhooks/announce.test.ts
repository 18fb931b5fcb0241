/** How the cloud delivers: each event and each webhook with something due in a process of its own, found by a sweep that posts nothing. */
import { expect, test } from 'vitest';
import { dueShards } from '../store/keys.ts';
import { adminOf } from '../testing/broker-clusters.ts';
import { dueItems } from '../testing/due-items.ts';
import { createWebhookFixture, hook, ok } from './testing/webhook-fixture.ts';

const never = new AbortController().signal;

test('a sweep announces the webhooks that have something due, and only those', async () => {
  const w = await createWebhookFixture();
  const { webhooks } = w.world.control;
  const owner = adminOf('default');
  const { webhook } = await webhooks.create(owner, { url: hook, types: ['cluster.*'] });
  await webhooks.create(owner, { url: `${hook}2`, types: ['invitation.*'] });
  w.answer(() => ({ status: 500, text: '' }));
  await w.happen();
  while (await w.bus.deliverDue(never));
  expect(w.received).toHaveLength(1);

  const announced = async (): Promise<string[]> => {
    const from = await w.store.newestCursor();
    await webhooks.deliverer?.announce();
    return (await w.store.outbox(from, 10)).map(({ type, subject }) => `${type} ${subject}`);
  };
  expect(await announced()).toEqual([]);
  w.clock.advance(10_000);
  expect(await announced()).toEqual([`webhook.due webhook/${webhook.id}`]);
  expect(w.received).toHaveLength(1);

  w.answer(() => ok);
  while (await w.bus.deliverDue(never));
  expect(w.received).toHaveLength(2);
  expect((await webhooks.deliveries.list(owner, webhook.id)).items).toMatchObject([
    { state: 'delivered', attempts: 2 },
  ]);
  expect(await announced()).toEqual([]);
});

test('whose time is over while delivering has written down what is left, and asks for no repetition', async () => {
  const w = await createWebhookFixture();
  const { webhooks } = w.world.control;
  const owner = adminOf('default');
  const { webhook } = await webhooks.create(owner, { url: hook, types: ['cluster.*'] });
  const over = new AbortController();
  w.answer(() => {
    over.abort(new Error('time is over'));
    return { status: 500, text: '' };
  });
  await w.happen();
  const [event] = (await w.store.outbox(undefined, 100)).filter(({ type }) => type === 'cluster.join-token-created');
  await webhooks.deliverer?.subscriber.handle(event!, over.signal);
  const { items } = await webhooks.deliveries.list(owner, webhook.id);
  expect(items).toMatchObject([{ state: 'pending', attempts: 1, last: { status: 500 } }]);
});

test('a sweep for which nothing waits reads nothing of any tenant, and one drops what waited for a webhook that is gone', async () => {
  const queries: string[] = [];
  const w = await createWebhookFixture({
    wrap: (store) => ({
      ...store,
      query(query, signal) {
        queries.push(query.partition);
        return store.query(query, signal);
      },
    }),
  });
  const { webhooks } = w.world.control;
  const owner = adminOf('default');
  const { webhook } = await webhooks.create(owner, { url: hook, types: ['cluster.*'] });
  for (const types of [['peering.*'], ['member.*']]) await webhooks.create(owner, { url: hook, types });
  queries.length = 0;
  await webhooks.deliverer?.announce();
  expect(queries).toHaveLength(dueShards);
  expect(queries.filter((partition) => !partition.startsWith('system/'))).toEqual([]);

  w.answer(() => ({ status: 500, text: '' }));
  for (let i = 0; i < 30; i += 1) await w.happen();
  while (await w.bus.deliverDue(never));
  await webhooks.delete(owner, webhook.id);
  w.clock.advance(10_000);
  await webhooks.deliverer?.sweep();
  expect((await w.store.query({ partition: 't/default/webhook-due', limit: 10 })).items).toEqual([]);
  expect(await dueItems(w.store, 'deliveries')).toEqual([]);
  expect(w.received).toHaveLength(30);
});
