/** The store in one DynamoDB table: strongly consistent reads, one transaction per change of more than one item, the outbox in the same transaction. */
import {
  type DynamoDBClient,
  GetItemCommand,
  QueryCommand,
  TransactionCanceledException,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import {
  checkKeys,
  checkTransaction,
  type Item,
  type Many,
  type NewEvent,
  type Op,
  type Query,
  type Store,
} from '../../ports/store.ts';
import type { Backoff } from './backoff.ts';
import { classify, tooLarge } from './cancellation.ts';
import { writeOf } from './expressions.ts';
import { type Attributes, isExpired, itemOf, keyOf } from './item.ts';
import { eventItem } from './outbox-item.ts';
import { endStream, giveBack, isStale, type TableRef, type Taken, takePositions } from './outbox-positions.ts';
import { newestCursor, readAll, readOne } from './outbox-reader.ts';
import { readMany } from './read-many.ts';
import { asReason, needsNoTransaction, writeOne } from './write-one.ts';

export interface DynamoDbStoreOptions {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly clock: Clock;
  readonly backoff: Backoff;
  /** Attempts at one transaction that others' transactions or throttling get in the way of. Default 8, which is about 3 s. */
  readonly maxAttempts?: number;
}

/** What belongs to one peering is read at once, about fifteen items: each request listens to the signal of the invocation. */
const optionsFor = (signal: AbortSignal | undefined): { readonly abortSignal?: AbortSignal } =>
  signal === undefined ? {} : { abortSignal: sharedByMany(signal) };

export function createDynamoDbStore(options: DynamoDbStoreOptions): Store {
  const { client, tableName, clock, backoff, maxAttempts = 8 } = options;
  const ref: TableRef = { client, tableName, clock };
  let closed = false;
  let lastOrder = 0;

  const ready = (signal?: AbortSignal): void => {
    signal?.throwIfAborted();
    if (closed) throw new AppError('internal', 'the store is closed');
  };

  /** Growing within this process; between processes as good as their clocks. */
  function nextOrder(): number {
    lastOrder = Math.max(clock.now() * 1_000, lastOrder + 1);
    return lastOrder;
  }

  async function commit(
    ops: readonly Op[],
    texts: readonly (string | undefined)[],
    taken: Taken | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const now = clock.now();
    const [first] = ops;
    if (first && taken === undefined && needsNoTransaction(ops)) {
      return writeOne(client, writeOf(first, texts[0], tableName, now), optionsFor(signal));
    }
    const TransactItems = [
      ...ops.map((op, i) => writeOf(op, texts[i], tableName, now)),
      ...(taken?.events ?? []).map((event, i) => ({
        Put: {
          TableName: tableName,
          Item: eventItem(event, taken?.positions[i] ?? { n: 0, takenAt: now }, nextOrder()),
          ConditionExpression: 'attribute_not_exists(pk)',
        },
      })),
    ];
    // The client names each transaction by a random token, so its own repetition after a lost answer writes nothing twice.
    await client.send(new TransactWriteItemsCommand({ TransactItems }), optionsFor(signal));
  }

  async function transact(
    ops: readonly Op[],
    events: readonly NewEvent[],
    texts: readonly (string | undefined)[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    let taken: Taken | undefined;
    for (let attempt = 1; ; attempt += 1) {
      if (taken !== undefined && isStale(ref, taken)) {
        await giveBack(ref, taken);
        taken = undefined;
      }
      if (events.length > 0) taken ??= await takePositions(ref, events, signal);
      try {
        await commit(ops, texts, taken, signal);
        return;
      } catch (error) {
        const verdict = verdictOf(error, ops, clock.now());
        // An unknown outcome may still become a success: its positions are left to the readers.
        if (verdict.kind === 'unknown') throw error;
        const last = verdict.kind === 'refused' || attempt === maxAttempts;
        if (taken !== undefined && (last || verdict.kind === 'positions-lost')) {
          await giveBack(ref, taken);
          taken = undefined;
        }
        if (verdict.kind === 'refused') throw verdict.error;
        if (last) throw busy(error, attempt);
        if (verdict.kind === 'passing') await backoff(attempt, signal);
      }
    }
  }

  return {
    async get<T>(pk: string, sk: string, signal?: AbortSignal) {
      ready(signal);
      const { Item: found } = await client.send(
        new GetItemCommand({ TableName: tableName, Key: keyOf({ pk, sk }), ConsistentRead: true }),
        optionsFor(signal),
      );
      return found === undefined || isExpired(found, clock.now()) ? undefined : itemOf<T>(found);
    },

    async getMany<T>({ keys, eventual }: Many, signal?: AbortSignal) {
      ready(signal);
      checkKeys(keys);
      return readMany<T>(
        { ...ref, backoff, maxAttempts },
        { keys, eventual: eventual === true },
        optionsFor(signal),
        signal,
      );
    },

    async query<T>(query: Query, signal?: AbortSignal) {
      ready(signal);
      const { limit, reverse = false } = query;
      const range = rangeOf(query);
      if (range === undefined) return { items: [] };
      const now = clock.now();
      const items: Item<T>[] = [];
      let start: Attributes | undefined;
      do {
        const { Items = [], LastEvaluatedKey } = await client.send(
          new QueryCommand({
            TableName: tableName,
            KeyConditionExpression: `pk = :pk${range.condition}`,
            FilterExpression: 'attribute_not_exists(exp) OR exp > :now',
            ExpressionAttributeValues: { ':pk': { S: query.partition }, ':now': { N: String(now) }, ...range.values },
            ConsistentRead: query.eventual !== true,
            ScanIndexForward: !reverse,
            // One more tells whether there is another page, two more are bounds that do not belong to it.
            Limit: limit + 3,
            ...(start === undefined ? {} : { ExclusiveStartKey: start }),
          }),
          optionsFor(signal),
        );
        for (const found of Items) {
          const item = itemOf<T>(found);
          if (!range.holds(item.sk)) continue;
          if (items.length === limit) return { items, cursor: items.at(-1)?.sk ?? '' };
          items.push(item);
        }
        start = LastEvaluatedKey;
      } while (start !== undefined);
      return { items };
    },

    async transact(ops, events = [], signal) {
      ready(signal);
      const texts = checkTransaction(ops, events);
      if (ops.length + events.length > 0) await transact(ops, events, texts, signal);
    },

    async outbox(after, limit, stream, signal) {
      ready(signal);
      return stream === undefined
        ? readAll(ref, { after, limit }, signal)
        : readOne(ref, stream, { after, limit }, signal);
    },

    async newestCursor(stream, signal) {
      ready(signal);
      return newestCursor(ref, stream, signal);
    },

    async endStream(stream, signal) {
      ready(signal);
      await endStream(ref, stream, signal);
    },

    /** The table's time to live does it, free of charge. */
    async sweep(signal) {
      ready(signal);
    },

    async close() {
      if (closed) return;
      closed = true;
      client.destroy();
    },
  };
}

function verdictOf(error: unknown, ops: readonly Op[], now: number): ReturnType<typeof classify> {
  if (error instanceof TransactionCanceledException) return classify(error.CancellationReasons ?? [], ops, now);
  const reason = asReason(error);
  if (reason !== undefined) return classify([reason], ops, now);
  const { name, message } = error as { readonly name?: string; readonly message?: string };
  if (name === 'ValidationException' && /size/i.test(message ?? '')) {
    return { kind: 'refused', error: tooLarge(message) };
  }
  return { kind: 'unknown' };
}

const busy = (cause: unknown, attempts: number): AppError =>
  new AppError('store_busy', `the table did not take the change in ${attempts} attempts`, { cause });

interface KeyRange {
  readonly condition: string;
  readonly values: Attributes;
  /** DynamoDB's ranges include both ends, ours exclude the cursor and the upper end. */
  readonly holds: (sk: string) => boolean;
}

/** Undefined: nothing can be in it. Cursors become bounds, so that one from elsewhere is as harmless as on the other adapters. */
function rangeOf({ from, to, cursor, reverse }: Query): KeyRange | undefined {
  const after = reverse ? undefined : cursor;
  const before = reverse ? cursor : undefined;
  const low = [from, after].filter((sk) => sk !== undefined && sk !== '').reduce(higher, undefined);
  const high = [to, before].filter((sk) => sk !== undefined).reduce(lower, undefined);
  if (high === '' || (low !== undefined && high !== undefined && low >= high)) return undefined;
  const holds = (sk: string): boolean =>
    (from === undefined || sk >= from) && (after === undefined || sk > after) && (high === undefined || sk < high);
  const values = {
    ...(low === undefined ? {} : { ':low': { S: low } }),
    ...(high === undefined ? {} : { ':high': { S: high } }),
  };
  if (low !== undefined && high !== undefined) return { condition: ' AND sk BETWEEN :low AND :high', values, holds };
  if (low !== undefined) return { condition: ' AND sk >= :low', values, holds };
  if (high !== undefined) return { condition: ' AND sk < :high', values, holds };
  return { condition: '', values, holds };
}

const higher = (a: string | undefined, b: string | undefined): string | undefined =>
  a === undefined || (b !== undefined && b > a) ? b : a;
const lower = (a: string | undefined, b: string | undefined): string | undefined =>
  a === undefined || (b !== undefined && b < a) ? b : a;
