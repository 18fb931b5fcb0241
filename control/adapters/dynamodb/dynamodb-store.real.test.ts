import { afterAll, beforeAll } from 'vitest';
import type { ManualClock } from '#shared/ports/clock.ts';
import { type DynamoDbLocal, startDynamoDbLocal } from '#test/aws/dynamodb-local.ts';
import { storeContract } from '../../ports/store.contract.ts';
import { createDynamoDbStore } from './dynamodb-store.ts';

let dynamodb: DynamoDbLocal;
beforeAll(async () => {
  dynamodb = await startDynamoDbLocal();
});
afterAll(() => dynamodb.stop());

const open = async (clock: ManualClock) =>
  createDynamoDbStore({
    client: dynamodb.client(),
    tableName: await dynamodb.newTable(),
    clock,
    backoff: () => new Promise((resolve) => setImmediate(resolve)),
  });

storeContract('DynamoDB Local', open);
