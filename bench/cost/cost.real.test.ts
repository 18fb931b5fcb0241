/** The count by item sizes against what DynamoDB Local says that the same calls consumed. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { jitteredBackoff } from '#control/adapters/dynamodb/backoff.ts';
import { createDynamoDbStore } from '#control/adapters/dynamodb/dynamodb-store.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type DynamoDbLocal, startDynamoDbLocal } from '#test/aws/dynamodb-local.ts';
import { Meter, type Reading } from './meter.ts';
import { meterClient } from './metered-client.ts';
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
    // DynamoDB bills every write of a transaction twice, DynamoDB Local most of them once.
    const countedUnits = writes(counted)[i + 1] ?? 0;
    expect(countedUnits).toBeGreaterThanOrEqual(consumedUnits);
    expect(countedUnits).toBeLessThanOrEqual(2 * consumedUnits);
  }
  for (const [i, { units }] of consumed.entries()) {
    // And finding nothing a whole unit, DynamoDB Local half a one; half a unit where eventual reads find nothing, DynamoDB Local hardly any.
    expect(counted[i]?.units.readUnit).toBeGreaterThanOrEqual(units.readUnit);
    expect(counted[i]?.units.readUnit).toBeLessThanOrEqual((i === 0 ? 4 : 2) * units.readUnit);
    expect(counted[i]?.units.httpRequest).toBe(units.httpRequest);
  }
  await store.close();
});
