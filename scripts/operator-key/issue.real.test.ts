import { afterAll, beforeAll, expect, test } from 'vitest';
import { jitteredBackoff } from '#control/adapters/dynamodb/backoff.ts';
import { createDynamoDbStore } from '#control/adapters/dynamodb/dynamodb-store.ts';
import { createControl } from '#control/control.ts';
import { silentChannel } from '#control/ports/agent-channel.ts';
import { createJsonLog } from '#functions/runtime/json-log.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type DynamoDbLocal, startDynamoDbLocal } from '#test/aws/dynamodb-local.ts';
import { issueOperatorKey } from './issue.ts';

let dynamodb: DynamoDbLocal;
beforeAll(async () => {
  dynamodb = await startDynamoDbLocal();
}, 600_000);
afterAll(() => dynamodb.stop());

test('a key written into the table opens the door, and the table does not hold it', async () => {
  const tableName = await dynamodb.newTable();
  const first = await issueOperatorKey({ client: dynamodb.client(), tableName });
  const second = await issueOperatorKey({ client: dynamodb.client(), tableName });
  expect(second).not.toBe(first);

  const origin = { from: '127.0.0.1', requestId: 'r1' };
  const clock = systemClock;
  const client = dynamodb.client();
  const { tenants } = createControl({
    store: createDynamoDbStore({ client, tableName, clock, backoff: jitteredBackoff(clock, Math.random) }),
    channel: silentChannel,
    clock,
    ids: createSystemIds(() => clock.now()),
    log: createJsonLog('error'),
    broker: () => ({ url: 'https://broker.example.com' }),
  });
  const operator = await tenants.operators.authenticate(first, origin);
  const { tenant } = await tenants.operators.create(operator, { name: 'acme' });
  expect(tenant.name).toBe('acme');
  expect(JSON.stringify(await dynamodb.dump(tableName))).not.toContain(first.slice(-43));
});
