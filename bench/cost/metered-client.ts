/** A client of DynamoDB Local that has it say what each call consumed, and counts that. */
import type { ConsumedCapacity, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Meter } from './meter.ts';

type Consumed = ConsumedCapacity | readonly ConsumedCapacity[] | undefined;

/** `pk` of the first item that a request names: where the heat is. */
const partitionOf = (input: Record<string, unknown>): string => {
  const text = (value: unknown): string | undefined => (value as { readonly S?: string } | undefined)?.S;
  const { Key, Item, ExpressionAttributeValues: values } = input as Record<string, Record<string, unknown> | undefined>;
  return text(Key?.pk) ?? text(Item?.pk) ?? text(values?.[':pk']) ?? 'a transaction';
};

export function meterClient(client: DynamoDBClient, meter: Meter): DynamoDBClient {
  client.middlewareStack.add(
    (next) => async (args) => {
      const input = { ...(args.input as object), ReturnConsumedCapacity: 'TOTAL' };
      const result = await next({ ...args, input } as typeof args);
      const { ConsumedCapacity: consumed } = result.output as { readonly ConsumedCapacity?: Consumed };
      meter.tableCalls += 1;
      for (const each of consumed === undefined ? [] : 'length' in consumed ? consumed : [consumed]) {
        const isRead = 'ConsistentRead' in input || 'RequestItems' in input;
        const units = each.CapacityUnits ?? 0;
        meter.table(partitionOf(input), isRead ? { reads: units } : { writes: units });
      }
      return result;
    },
    { step: 'initialize', name: 'meterCapacity' },
  );
  return client;
}
