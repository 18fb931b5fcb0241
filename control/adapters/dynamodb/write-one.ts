/**
 * One item without events, as a conditional write: half the price of a transaction of one. A transaction is named by the client, so that its
 * own repetition after a lost answer writes nothing twice; here the item itself carries the name of its write.
 */
import { randomUUID } from 'node:crypto';
import type { CancellationReason, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { ConditionalCheckFailedException, type DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import type { Op } from '../../ports/store.ts';

export const needsNoTransaction = (ops: readonly Op[]): boolean =>
  ops.length === 1 && (ops[0]?.op === 'put' || ops[0]?.op === 'update');

/** `write` as it would stand in a transaction. */
export async function writeOne(
  client: DynamoDBClient,
  { Put }: TransactWriteItem,
  options: { readonly abortSignal?: AbortSignal },
): Promise<void> {
  if (Put?.Item === undefined) throw new TypeError('only puts are written alone');
  const name = randomUUID().slice(0, 18);
  const command = new PutItemCommand({ ...Put, TableName: Put.TableName, Item: { ...Put.Item, w: { S: name } } });
  try {
    await client.send(command, options);
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException && error.Item?.w?.S === name) return;
    throw error;
  }
}

const passing = new Set([
  'TransactionConflictException',
  'ThrottlingException',
  'ProvisionedThroughputExceededException',
]);

/** What a transaction of this one write would have said; undefined: it is unknown whether it was written. */
export function asReason(error: unknown): CancellationReason | undefined {
  if (error instanceof ConditionalCheckFailedException) {
    return { Code: 'ConditionalCheckFailed', ...(error.Item && { Item: error.Item }) };
  }
  const { name = '' } = error as { readonly name?: string };
  return passing.has(name) ? { Code: 'TransactionConflict' } : undefined;
}
