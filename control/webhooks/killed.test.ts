import { describe, expect, test } from 'vitest';
import { adminOf } from '../testing/broker-clusters.ts';
import { createFaultyStore } from '../testing/faulty-store.ts';
import { createWebhookFixture, hook, ok } from './testing/webhook-fixture.ts';

const admin = adminOf('default');
const minute = 60_000;

/** The process dies at the chosen write while it delivers, and another one goes on with what is stored. */
async function killedAt(write: number, when: 'before' | 'after') {
  const { fault, writes, wrap } = createFaultyStore();
  const first = await createWebhookFixture({ wrap });
  const { webhooks } = first.world.control;
  const { webhook } = await webhooks.create(admin, { url: hook, types: ['cluster.*'] });
  const other = await webhooks.create(admin, { url: 'https://other.example/', types: ['cluster.*'] });
  const id = await first.happen();
  // The first attempt at the one fails, so that retries are among the writes.
  let failures = 1;
  first.answer(({ url }) => (url === hook && failures-- > 0 ? { status: 500, text: '' } : ok));
  const before = writes.count;
  fault.in = write;
  fault.when = when;
  await first.settle().catch(() => undefined);
  const died = fault.in === 0 && write > 0;
  fault.in = 0;
  const second = await createWebhookFixture({ from: first });
  await second.settle();
  await second.pass(3 * minute, 5_000);
  const states = await Promise.all(
    [webhook.id, other.webhook.id].map(
      async (one) => (await second.world.control.webhooks.deliveries.get(admin, one, id)).state,
    ),
  );
  const due = await second.store.query({ partition: 't/default/webhook-due', limit: 10 });
  return { died, states, writes: writes.count - before, received: second.received, due: due.items, id };
}

describe('killed at any write, before or after its commit', async () => {
  const { writes: total } = await killedAt(0, 'before');
  const cases = Array.from({ length: total }, (_, i) => [
    { write: i + 1, when: 'before' as const },
    { write: i + 1, when: 'after' as const },
  ]).flat();

  test('there are writes to die at', () => expect(total).toBeGreaterThan(6));

  test.each(cases)('write $write, $when: every webhook gets the event, and nothing is left over', async (at) => {
    const { states, received, due, id } = await killedAt(at.write, at.when);
    expect(states).toEqual(['delivered', 'delivered']);
    for (const url of [hook, 'https://other.example/']) {
      const got = received.filter((post) => post.url === url);
      expect(got.length).toBeGreaterThanOrEqual(1);
      expect(new Set(got.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([id]));
    }
    expect(due).toEqual([]);
  });
});

test('two processes that find the same deliveries due send each of them once', async () => {
  const first = await createWebhookFixture();
  await first.world.control.webhooks.create(admin, { url: hook, types: ['cluster.*'] });
  first.answer(() => ({ status: 500, text: '' }));
  for (let i = 0; i < 30; i += 1) await first.happen();
  await first.settle();
  expect(first.received).toHaveLength(30);
  first.answer(() => ok);
  const second = await createWebhookFixture({ from: first });
  first.clock.advance(10_000);
  await Promise.all([first, second].map(({ world: clusters }) => clusters.control.webhooks.deliverer?.sweep()));
  const ids = first.received.slice(30).map(({ headers }) => headers['webhook-id']);
  expect(ids).toHaveLength(30);
  expect(new Set(ids).size).toBe(30);
});
