/** The counters on DynamoDB Local: several brokers on one table, with conflicts that the table makes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeOf } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { type DynamoDbLocal, startDynamoDbLocal } from '#test/aws/dynamodb-local.ts';
import { createDynamoDbStore } from '../adapters/dynamodb/dynamodb-store.ts';
import { createControl } from '../control.ts';
import { adminOf, brokerUrl, createBrokerClusters } from '../testing/broker-clusters.ts';
import { countingIds } from '../testing/counting-ids.ts';
import { countedItems, countersOf } from '../testing/exact-counts.ts';
import { hostedLimits } from './limits.ts';

let dynamodb: DynamoDbLocal;
beforeAll(async () => {
  dynamodb = await startDynamoDbLocal();
});
afterAll(() => dynamodb.stop());

test('of many peerings that several brokers are asked for at once, as many are made as the limit allows, and all that end make room', async () => {
  const limits = { ...hostedLimits, peerings: 5 };
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const store = createDynamoDbStore({
    client: dynamodb.client(),
    tableName: await dynamodb.newTable(),
    clock,
    backoff: () => new Promise((resolve) => setImmediate(resolve)),
    maxAttempts: 100,
  });
  const setting = createBrokerClusters({ clock, deps: { store, limits } });
  const names = ['rome', 'milan', 'turin', 'siena'];
  for (const name of names) await setting.join(name);
  const ids = countingIds();
  const brokers = [1, 2, 3].map(
    () =>
      createControl({
        store,
        clock,
        ids: { ...ids, next: (prefix) => `${ids.next(prefix)}x` },
        log: silentLog,
        limits,
        channel: { ring: () => undefined },
        broker: () => ({ url: brokerUrl }),
      }).peerings,
  );
  const admin = adminOf('default');
  const pairs = names.flatMap((consumer) =>
    names.filter((provider) => provider !== consumer).map((provider) => ({ consumer, provider, resources: {} })),
  );
  const answers = await Promise.all(
    pairs.map((pair, i) => brokers[i % 3]?.request(admin, pair).catch((error: unknown) => codeOf(error))),
  );
  const made = answers.filter((answer) => typeof answer === 'object');
  expect(made).toHaveLength(limits.peerings);
  expect(new Set(answers.filter((answer) => typeof answer === 'string'))).toEqual(new Set(['limit_reached']));
  expect(await countersOf(store, 'default')).toEqual({ clusters: 4, peerings: limits.peerings });

  await Promise.all(made.map((answer, i) => brokers[i % 3]?.unpeer(admin, answer?.peering.id ?? '')));
  await setting.until(async () => (await countersOf(store, 'default')).peerings === 0);
  expect(await countersOf(store, 'default')).toEqual(await countedItems(store, 'default'));
  await store.close();
}, 120_000);
