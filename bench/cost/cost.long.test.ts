/** The count by item sizes against what DynamoDB Local says that the same calls consumed. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { jitteredBackoff } from '#control/adapters/dynamodb/backoff.ts';
import { createDynamoDbStore } from '#control/adapters/dynamodb/dynamodb-store.ts';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import type { Op } from '#control/ports/store.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type DynamoDbLocal, startDynamoDbLocal } from '#test/aws/dynamodb-local.ts';
import { Meter, type Reading } from './meter.ts';
import { meterClient } from './metered-client.ts';
import { meteredStore } from './metered-store.ts';
import { openStage, type Stage } from './scenarios.ts';

let dynamodb: DynamoDbLocal;
beforeAll(async () => {
  dynamodb = await startDynamoDbLocal();
});
afterAll(() => dynamodb?.stop());

async function play(stage: Stage): Promise<readonly Reading[]> {
  await stage.join('rome');
  await stage.join('milan');
  const idle = await stage.measure(() => stage.pass(3_600_000));
  let id = '';
  const made = await stage.measure(async () => {
    id = await stage.peer('rome', 'milan');
  });
  const ended = await stage.measure(() => stage.unpeer(id));
  return [idle, made, ended];
}

test('units by sizes are those that DynamoDB Local consumes, or more where DynamoDB itself bills more', async () => {
  const clock = new ManualClock(Date.now());
  const meter = new Meter();
  const client = meterClient(dynamodb.client(), meter);
  const backoff = jitteredBackoff(systemClock, Math.random);
  const store = createDynamoDbStore({ client, tableName: await dynamodb.newTable(), clock, backoff });
  const consumed = await play(await openStage({ clock, meter, store }));
  const counted = await play(await openStage());
  const writes = (readings: readonly Reading[]) => readings.map(({ units }) => units.writeUnit);
  const [idle, ...transactions] = writes(consumed);
  expect(writes(counted)[0]).toBe(idle);
  for (const [i, consumedUnits] of transactions.entries()) {
    // Of the writes of a transaction DynamoDB Local adds up the different units only: five small items count as one. Most have small items.
    const countedUnits = writes(counted)[i + 1] ?? 0;
    expect(countedUnits).toBeGreaterThanOrEqual(consumedUnits);
    expect(countedUnits).toBeLessThanOrEqual(3 * consumedUnits);
  }
  for (const [i, { units }] of consumed.entries()) {
    // And finding nothing a whole unit, DynamoDB Local half a one; half a unit where eventual reads find nothing, DynamoDB Local hardly any.
    expect(counted[i]?.units.readUnit).toBeGreaterThanOrEqual(units.readUnit);
    expect(counted[i]?.units.readUnit).toBeLessThanOrEqual((i === 0 ? 5 : 2) * units.readUnit);
    expect(counted[i]?.units.httpRequest).toBe(units.httpRequest);
  }
  await store.close();
});

test('a transaction whose writes differ in units is counted exactly as DynamoDB Local consumes it', async () => {
  const clock = new ManualClock(Date.now());
  const [consumed, counted] = [new Meter(), new Meter()];
  const backoff = jitteredBackoff(systemClock, Math.random);
  const client = meterClient(dynamodb.client(), consumed);
  const real = createDynamoDbStore({ client, tableName: await dynamodb.newTable(), clock, backoff });
  const sized = meteredStore(createMemoryStore({ clock }), counted);
  const item = (sk: string, bytes: number) => ({ pk: 't/acme/costs', sk, value: { text: 'x'.repeat(bytes) } });
  const transactions: readonly (readonly Op[])[] = [
    [
      { op: 'put', ...item('a', 10) },
      { op: 'set', ...item('b', 1_500) },
    ],
    [
      { op: 'update', ifVersion: 1, ...item('a', 2_500) },
      { op: 'set', ...item('c', 10) },
      { op: 'set', ...item('b', 1_400) },
    ],
    [
      { op: 'delete', pk: 't/acme/costs', sk: 'a', ifVersion: 2 },
      { op: 'add', pk: 't/acme/costs', sk: 'count', by: 1 },
    ],
  ];
  for (const ops of transactions) for (const store of [real, sized]) await store.transact(ops);
  expect(counted.units.writeUnit).toBe(consumed.units.writeUnit);
  expect(counted.units.writeUnit).toBe(6 + 12 + 8);
  await real.close();
});
