/** Tenants without work: their items in the list of tenants, and nothing else. */
import { BatchWriteItemCommand, type DynamoDBClient, type WriteRequest } from '@aws-sdk/client-dynamodb';
import { writeOf } from '#control/adapters/dynamodb/expressions.ts';
import type { Store } from '#control/ports/store.ts';
import { key } from '#control/store/keys.ts';

/** `count` of them. */
export type MakeIdle = (count: number) => Promise<void>;

const names = (first: number, end: number) =>
  Array.from({ length: end - first }, (_, i) => key.tenantName(`idle-${first + i}`));

export const idleIn =
  (store: Store): MakeIdle =>
  async (count) => {
    const itemsAtOnce = 50;
    for (let i = 0; i < count; i += itemsAtOnce)
      await store.transact(names(i, Math.min(count, i + itemsAtOnce)).map((at) => ({ op: 'put', ...at, value: {} })));
  };

/** The same items, past the store: DynamoDB Local makes 50 in a transaction in a second, and in batches 700. */
export const idleInTable =
  (client: DynamoDBClient, tableName: string): MakeIdle =>
  async (count) => {
    const itemsAtOnce = 25;
    let made = 0;
    const makeSome = async (): Promise<void> => {
      while (made < count) {
        const first = made;
        made = Math.min(count, first + itemsAtOnce);
        let left: WriteRequest[] = names(first, made).map((at) => {
          const { Put } = writeOf({ op: 'put', ...at, value: {} }, '{}', tableName, 0);
          return { PutRequest: { Item: Put?.Item } };
        });
        while (left.length > 0) {
          const answer = await client.send(new BatchWriteItemCommand({ RequestItems: { [tableName]: left } }));
          left = answer.UnprocessedItems?.[tableName] ?? [];
        }
      }
    };
    await Promise.all(Array.from({ length: 4 }, makeSome));
  };
