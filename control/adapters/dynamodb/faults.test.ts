/** What DynamoDB may do besides answering: throttle, conflict, time out, refuse. Injected, because no emulator does it. */
import {
  ConditionalCheckFailedException,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  TransactionCanceledException,
  TransactWriteItemsCommand,
  type TransactWriteItemsCommandInput,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { mockClient } from 'aws-sdk-client-mock';
import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import type { NewEvent, Op } from '../../ports/store.ts';
import { type Backoff, jitteredBackoff } from './backoff.ts';
import { createDynamoDbStore } from './dynamodb-store.ts';
import { positionLifeMs } from './outbox-item.ts';

const mock = mockClient(DynamoDBClient);
beforeEach(() => {
  mock.reset();
});

const cancelled = (...codes: readonly string[]) =>
  new TransactionCanceledException({
    message: 'Transaction cancelled',
    $metadata: {},
    CancellationReasons: codes.map((Code) => ({ Code })),
  });

const put: Op = { op: 'put', pk: 'p', sk: 'a', value: 1 };
const two: readonly Op[] = [put, { op: 'put', pk: 'p', sk: 'z', value: 1 }];
const event: NewEvent = { id: 'ev_1', stream: 'acme', type: 'thing.changed', subject: 'thing/1', at: 0, data: {} };

function open(backoff: Backoff = async () => undefined, maxAttempts = 4) {
  const clock = new ManualClock();
  const client = new DynamoDBClient({ region: 'eu-central-1' });
  return { clock, store: createDynamoDbStore({ client, tableName: 't', clock, backoff, maxAttempts }) };
}

/** The outbox positions that each attempt wrote to. */
const positionsTried = (): string[][] =>
  mock
    .commandCalls(TransactWriteItemsCommand)
    .map(({ args }) =>
      ((args[0].input as TransactWriteItemsCommandInput).TransactItems ?? []).flatMap(({ Put }) =>
        Put?.Item?.kind?.S === 'event' ? [Put.Item.sk?.S ?? ''] : [],
      ),
    );
const closed = (): (string | undefined)[] =>
  mock
    .commandCalls(PutItemCommand)
    .filter(({ args }) => args[0].input.Item?.kind?.S === 'closed')
    .map(({ args }) => args[0].input.Item?.sk?.S);

const place = (n: number): string => `e/${String(n).padStart(16, '0')}`;

/** Positions count up from 1, as the table would. */
function countPositions(): void {
  let n = 0;
  mock.on(UpdateItemCommand).callsFake(({ ExpressionAttributeValues }) => {
    const before = { n: { N: String(n) }, listed: { BOOL: true } };
    n += Number(ExpressionAttributeValues[':count'].N);
    return { Attributes: before };
  });
  mock.on(PutItemCommand).resolves({});
}

describe('one item alone', () => {
  const written = () => mock.commandCalls(PutItemCommand).map(({ args }) => args[0].input.Item ?? {});

  test('is written without a transaction', async () => {
    mock.on(PutItemCommand).resolves({});
    await open().store.transact([put]);
    expect([written().length, mock.commandCalls(TransactWriteItemsCommand).length]).toEqual([1, 0]);
  });

  test('that is found written by this very write is written, and by any other a conflict', async () => {
    const failed = (Item: Record<string, unknown>) =>
      new ConditionalCheckFailedException({ message: 'no', $metadata: {}, Item: Item as never });
    mock.on(PutItemCommand).callsFake(({ Item }) => Promise.reject(failed(Item)));
    await open().store.transact([put]);
    mock.on(PutItemCommand).callsFake(({ Item }) => Promise.reject(failed({ ...Item, w: { S: 'another' } })));
    await expect(open().store.transact([put])).rejects.toMatchObject({
      code: 'version_conflict',
      detail: { index: 0, expected: 0, found: 1 },
    });
  });

  test.each(['TransactionConflictException', 'ThrottlingException', 'ProvisionedThroughputExceededException'])(
    'that meets %s is tried again and succeeds',
    async (name) => {
      mock
        .on(PutItemCommand)
        .rejectsOnce(Object.assign(new Error('later'), { name }))
        .resolves({});
      await open().store.transact([put]);
      expect(written()).toHaveLength(2);
    },
  );

  test('is not repeated by us when it is unknown whether it was written, and too much says so', async () => {
    const lost = Object.assign(new Error('socket hang up'), { name: 'TimeoutError' });
    mock.on(PutItemCommand).rejects(lost);
    await expect(open().store.transact([put])).rejects.toBe(lost);
    const message = 'Item size has exceeded the maximum allowed size';
    mock.on(PutItemCommand).rejects(Object.assign(new Error(message), { name: 'ValidationException' }));
    await expect(open().store.transact([put])).rejects.toMatchObject({ code: 'too_large' });
  });
});

describe('a transaction', () => {
  test.each(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded'])(
    'that meets %s is tried again and succeeds',
    async (code) => {
      mock.on(TransactWriteItemsCommand).rejectsOnce(cancelled(code)).rejectsOnce(cancelled('None', code)).resolves({});
      await open().store.transact(two);
      expect(mock.commandCalls(TransactWriteItemsCommand)).toHaveLength(3);
    },
  );

  test('is given up after the last attempt, and says that it may be repeated', async () => {
    mock.on(TransactWriteItemsCommand).rejects(cancelled('TransactionConflict'));
    const waited: number[] = [];
    const { store } = open(async (attempt) => void waited.push(attempt));
    await expect(store.transact(two)).rejects.toMatchObject({ code: 'store_busy' });
    expect([waited, mock.commandCalls(TransactWriteItemsCommand).length]).toEqual([[1, 2, 3], 4]);
  });

  test('whose condition did not hold is a conflict at once, although other parts met a conflict in passing', async () => {
    mock.on(TransactWriteItemsCommand).rejects(cancelled('TransactionConflict', 'ConditionalCheckFailed'));
    const update: Op = { op: 'update', pk: 'p', sk: 'b', value: 1, ifVersion: 4 };
    await expect(open().store.transact([put, update])).rejects.toMatchObject({
      code: 'version_conflict',
      detail: { index: 1, expected: 4, found: 0 },
    });
    expect(mock.commandCalls(TransactWriteItemsCommand)).toHaveLength(1);
  });

  test('is not repeated by us when it is unknown whether it was committed', async () => {
    const lost = Object.assign(new Error('socket hang up'), { name: 'TimeoutError' });
    mock.on(TransactWriteItemsCommand).rejects(lost);
    await expect(open().store.transact(two)).rejects.toBe(lost);
    expect(mock.commandCalls(TransactWriteItemsCommand)).toHaveLength(1);
  });

  test('that is larger than the table takes says so', async () => {
    const message = 'Item size has exceeded the maximum allowed size';
    mock.on(TransactWriteItemsCommand).rejects(Object.assign(new Error(message), { name: 'ValidationException' }));
    await expect(open().store.transact(two)).rejects.toMatchObject({ code: 'too_large' });
  });

  test('stops trying when its caller gives up', async () => {
    const caller = new AbortController();
    mock.on(TransactWriteItemsCommand).rejects(cancelled('ThrottlingError'));
    const { store } = open(async (_attempt, signal) => {
      caller.abort(new Error('given up'));
      signal?.throwIfAborted();
    });
    await expect(store.transact(two, [], caller.signal)).rejects.toThrow('given up');
  });
});

describe('the events of a transaction', () => {
  beforeEach(countPositions);

  test('keep their position while it is tried again', async () => {
    mock.on(TransactWriteItemsCommand).rejectsOnce(cancelled('TransactionConflict')).resolves({});
    await open().store.transact([put], [event]);
    expect(positionsTried()).toEqual([[place(1)], [place(1)]]);
    expect(closed()).toEqual([]);
  });

  test('get new positions when a reader closed theirs', async () => {
    mock.on(TransactWriteItemsCommand).rejectsOnce(cancelled('None', 'ConditionalCheckFailed')).resolves({});
    await open().store.transact([put], [event]);
    expect(positionsTried()).toEqual([[place(1)], [place(2)]]);
  });

  test('get new positions when theirs have become old while waiting', async () => {
    mock.on(TransactWriteItemsCommand).rejectsOnce(cancelled('ThrottlingError')).resolves({});
    const { store, clock } = open(async () => clock.advance(positionLifeMs + 1));
    await store.transact([put], [event]);
    expect(positionsTried()).toEqual([[place(1)], [place(2)]]);
    expect(closed()).toEqual([place(1)]);
  });

  test('leave no gap behind when it is refused', async () => {
    mock.on(TransactWriteItemsCommand).rejects(cancelled('ConditionalCheckFailed', 'None', 'None'));
    await expect(open().store.transact([put], [event, { ...event, id: 'ev_2' }])).rejects.toMatchObject({
      code: 'version_conflict',
    });
    expect(closed()).toEqual([place(1), place(2)]);
  });

  test('leave their positions to the readers when it is unknown whether they were committed', async () => {
    mock.on(TransactWriteItemsCommand).rejects(new Error('socket hang up'));
    await expect(open().store.transact([put], [event])).rejects.toThrow('socket hang up');
    expect(closed()).toEqual([]);
  });

  test('are not taken for written when a reader was faster in closing what was given back', async () => {
    mock.on(TransactWriteItemsCommand).rejects(cancelled('ConditionalCheckFailed'));
    mock.on(PutItemCommand).rejects(new ConditionalCheckFailedException({ message: 'closed', $metadata: {} }));
    await expect(open().store.transact([put], [event])).rejects.toMatchObject({ code: 'version_conflict' });
  });
});

test('a throttled read is thrown as it comes, after what the client itself tried', async () => {
  const throttled = Object.assign(new Error('slow down'), { name: 'ThrottlingException' });
  mock.on(GetItemCommand).rejects(throttled);
  await expect(open().store.get('p', 'a')).rejects.toBe(throttled);
});

test('waiting grows with the attempts, up to a bound, and differs between processes', async () => {
  const waits = async (random: () => number) => {
    const slept: number[] = [];
    const clock = { now: () => 0, sleep: async (ms: number) => void slept.push(ms) };
    for (const attempt of [1, 2, 3, 10]) await jitteredBackoff(clock, random)(attempt);
    return slept;
  };
  expect(await waits(() => 1)).toEqual([40, 80, 160, 2_000]);
  expect(await waits(() => 0.5)).toEqual([20, 40, 80, 1_000]);
});
