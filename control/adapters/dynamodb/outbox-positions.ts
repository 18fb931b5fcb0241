/** Positions of the outbox: taking them before a transaction, closing those that were not used. */
import {
  type AttributeValue,
  ConditionalCheckFailedException,
  type DynamoDBClient,
  PutItemCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { Clock } from '#shared/ports/clock.ts';
import type { NewEvent } from '../../ports/store.ts';
import { expiryOf, numberOf } from './item.ts';
import { closedItem, headKey, keptMs, type Position, positionLifeMs, streamsPartition } from './outbox-item.ts';

export interface TableRef {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly clock: Clock;
}

/** The positions of the events of one transaction, in the order of the events. */
export interface Taken {
  readonly events: readonly NewEvent[];
  readonly positions: readonly Position[];
  readonly takenAt: number;
}

export async function takePositions(
  ref: TableRef,
  events: readonly NewEvent[],
  signal: AbortSignal | undefined,
): Promise<Taken> {
  const takenAt = ref.clock.now();
  const counts = new Map<string, number>();
  for (const { stream } of events) counts.set(stream, (counts.get(stream) ?? 0) + 1);
  const next = new Map<string, Position>();
  await Promise.all(
    [...counts].map(async ([stream, count]) => next.set(stream, await advance(ref, stream, count, takenAt, signal))),
  );
  const positions = events.map(({ stream }) => {
    const position = next.get(stream) as Position;
    next.set(stream, { n: position.n + 1, takenAt, prev: takenAt });
    return position;
  });
  return { events, positions, takenAt };
}

async function advance(
  { client, tableName: TableName }: TableRef,
  stream: string,
  count: number,
  takenAt: number,
  abortSignal: AbortSignal | undefined,
): Promise<Position> {
  const options = abortSignal === undefined ? {} : { abortSignal };
  const { Attributes: before } = await client.send(
    new UpdateItemCommand({
      TableName,
      Key: headKey(stream),
      UpdateExpression: 'SET taken = :now ADD n :count',
      ExpressionAttributeValues: { ':now': { N: String(takenAt) }, ':count': { N: String(count) } },
      ReturnValues: 'ALL_OLD',
    }),
    options,
  );
  if (before?.listed === undefined) await list({ client, TableName }, stream, options);
  const prev = numberOf(before?.taken);
  return { n: (numberOf(before?.n) ?? 0) + 1, takenAt, ...(prev === undefined ? {} : { prev }) };
}

/** Readers of all streams must know of this one before its first event. Repeated until the head says that it was done. */
async function list(
  { client, TableName }: { readonly client: DynamoDBClient; readonly TableName: string },
  stream: string,
  options: { readonly abortSignal?: AbortSignal },
): Promise<void> {
  await client.send(
    new PutItemCommand({ TableName, Item: { pk: { S: streamsPartition }, sk: { S: stream } } }),
    options,
  );
  await client.send(
    new UpdateItemCommand({
      TableName,
      Key: headKey(stream),
      UpdateExpression: 'SET listed = :yes',
      ExpressionAttributeValues: { ':yes': { BOOL: true } },
    }),
    options,
  );
}

/**
 * The head and the name of a stream go after the last of its places, by the table's time to live. Until then a late writer finds its position
 * where it would have been: removed at once, the head would count from the beginning and meet places that are taken.
 */
export async function endStream(
  { client, tableName: TableName, clock }: TableRef,
  stream: string,
  abortSignal?: AbortSignal,
): Promise<void> {
  const { exp, ttl } = expiryOf(clock.now() + 3 * keptMs);
  const places = [headKey(stream), { pk: { S: streamsPartition }, sk: { S: stream } }];
  for (const Key of places) {
    await client
      .send(
        new UpdateItemCommand({
          TableName,
          Key,
          UpdateExpression: 'SET exp = :exp, #ttl = :ttl',
          ConditionExpression: 'attribute_exists(pk)',
          ExpressionAttributeNames: { '#ttl': 'ttl' },
          ExpressionAttributeValues: { ':exp': exp as AttributeValue, ':ttl': ttl as AttributeValue },
        }),
        abortSignal === undefined ? {} : { abortSignal },
      )
      .catch((error: unknown) => {
        if (!(error instanceof ConditionalCheckFailedException)) throw error;
      });
  }
}

export const isStale = ({ clock }: TableRef, { takenAt }: Taken): boolean => clock.now() - takenAt > positionLifeMs;

/** After a transaction that certainly failed: no reader has to wait for these. */
export async function giveBack(ref: TableRef, { events, positions }: Taken): Promise<void> {
  await Promise.all(positions.map((position, i) => closePlace(ref, events[i]?.stream ?? '', position)));
}

/** False: an event is there, or it was closed already. */
export async function closePlace(
  { client, tableName, clock }: TableRef,
  stream: string,
  position: Position,
): Promise<boolean> {
  try {
    await client.send(
      new PutItemCommand({
        TableName: tableName,
        Item: closedItem(stream, position, clock.now()),
        ConditionExpression: 'attribute_not_exists(pk)',
      }),
    );
    return true;
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false;
    throw error;
  }
}
