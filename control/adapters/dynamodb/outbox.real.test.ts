/** The promise of the outbox under concurrency: a reader of a stream sees every committed event once, for any interleaving of writers. */
import { TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { type DynamoDbLocal, startDynamoDbLocal } from '#test/aws/dynamodb-local.ts';
import type { NewEvent, Store } from '../../ports/store.ts';
import { createDynamoDbStore } from './dynamodb-store.ts';
import { closedAtOnce, graceMs, keptMs } from './outbox-item.ts';

let dynamodb: DynamoDbLocal;
beforeAll(async () => {
  dynamodb = await startDynamoDbLocal();
});
afterAll(() => dynamodb.stop());

const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Held {
  readonly store: Store;
  /** Lets the transaction that is on its way reach the table. */
  release(): void;
}

class Table {
  readonly clock = new ManualClock();
  readonly name: string;

  private constructor(name: string) {
    this.name = name;
  }

  static async make(): Promise<Table> {
    return new Table(await dynamodb.newTable());
  }

  open(): Store {
    return createDynamoDbStore({ client: dynamodb.client(), tableName: this.name, clock: this.clock, backoff: soon });
  }

  /** A process whose transactions stay in the network until they are released. */
  slow(): Held & { readonly sent: Promise<void> } {
    const client = dynamodb.client();
    let release: () => void = () => undefined;
    let sent: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const onItsWay = new Promise<void>((resolve) => {
      sent = resolve;
    });
    client.middlewareStack.add(
      (next, { commandName }) =>
        async (args) => {
          if (commandName === TransactWriteItemsCommand.name) {
            sent();
            await released;
          }
          return next(args);
        },
      { step: 'build' },
    );
    const store = createDynamoDbStore({ client, tableName: this.name, clock: this.clock, backoff: soon });
    return { store, release, sent: onItsWay };
  }

  event(id: string, stream = 'acme'): NewEvent {
    return { id, stream, type: 'thing.changed', subject: `thing/${id}`, at: this.clock.now(), data: {} };
  }
}

const ids = (events: readonly { readonly id: string }[]): string[] => events.map(({ id }) => id);

describe('an event whose transaction is slow', () => {
  test('holds back what comes after it for a moment, and is seen in its place when it arrives in time', async () => {
    const table = await Table.make();
    const [fast, late] = [table.open(), table.slow()];
    await fast.transact([], [table.event('before')]);
    const writing = late.store.transact([], [table.event('slow')]);
    await late.sent;
    await fast.transact([], [table.event('after')]);
    expect(ids(await fast.outbox(undefined, 10, 'acme'))).toEqual(['before']);
    late.release();
    await writing;
    expect(ids(await fast.outbox(undefined, 10, 'acme'))).toEqual(['before', 'slow', 'after']);
  });

  test('is written behind what a reader has seen meanwhile, and is not lost', async () => {
    const table = await Table.make();
    const [fast, late] = [table.open(), table.slow()];
    const writing = late.store.transact([], [table.event('slow'), table.event('slow too')]);
    await late.sent;
    await fast.transact([], [table.event('after')]);
    table.clock.advance(graceMs);
    const [seen, ...more] = await fast.outbox(undefined, 10, 'acme');
    expect([seen?.id, more]).toEqual(['after', []]);
    late.release();
    await writing;
    expect(ids(await fast.outbox(seen?.cursor, 10, 'acme'))).toEqual(['slow', 'slow too']);
  });

  test('comes after a position that was called the newest', async () => {
    const table = await Table.make();
    const [fast, late] = [table.open(), table.slow()];
    const writing = late.store.transact([], [table.event('slow')]);
    await late.sent;
    await fast.transact([], [table.event('seen')]);
    const newest = await fast.newestCursor('acme');
    late.release();
    await writing;
    expect(ids(await fast.outbox(newest, 10, 'acme'))).toEqual(['slow']);
  });

  test('does not delay other tenants', async () => {
    const table = await Table.make();
    const [fast, late] = [table.open(), table.slow()];
    const writing = late.store.transact([], [table.event('slow')]);
    await late.sent;
    await fast.transact([], [table.event('after'), table.event('other', 'globex')]);
    expect(ids(await fast.outbox(undefined, 10))).toEqual(['other']);
    late.release();
    await writing;
  });
});

test('a refused change leaves no gap for readers to wait at', async () => {
  const table = await Table.make();
  const store = table.open();
  await store.transact([{ op: 'put', pk: 'p', sk: 'a', value: 1 }], [table.event('first')]);
  await expect(
    store.transact([{ op: 'put', pk: 'p', sk: 'a', value: 2 }], [table.event('refused')]),
  ).rejects.toMatchObject({ code: 'version_conflict' });
  await store.transact([], [table.event('second')]);
  expect(ids(await store.outbox(undefined, 10, 'acme'))).toEqual(['first', 'second']);
});

test('old events that the table dropped are not waited for, however many they were', async () => {
  const table = await Table.make();
  const store = table.open();
  for (let i = 0; i < 5; i += 1) await store.transact([], [table.event(`old ${i}`)]);
  const [old] = await store.outbox(undefined, 1, 'acme');
  await drop(table, () => true);
  table.clock.advance(2 * keptMs);
  const before = (await dynamodb.dump(table.name)).length;
  await store.transact([], [table.event('new')]);
  expect(ids(await store.outbox(undefined, 10, 'acme'))).toEqual(['new']);
  expect(ids(await store.outbox(old?.cursor, 10, 'acme'))).toEqual(['new']);
  expect((await dynamodb.dump(table.name)).length).toBe(before + 1);
});

test('a writer that died after a long silence costs readers a bounded number of writes', async () => {
  const table = await Table.make();
  const store = table.open();
  for (let i = 0; i < 3 * closedAtOnce; i += 50) {
    await store.transact(
      [],
      Array.from({ length: 50 }, (_, n) => table.event(`old ${i + n}`)),
    );
  }
  await drop(table, () => true);
  table.clock.advance(2 * keptMs);
  const dead = table.slow();
  void dead.store.transact([], [table.event('never')]).catch(() => undefined);
  await dead.sent;
  await store.transact([], [table.event('new')]);
  table.clock.advance(graceMs);
  expect(ids(await store.outbox(undefined, 10, 'acme'))).toEqual(['new']);
  expect((await dynamodb.dump(table.name)).filter(({ kind }) => kind?.S === 'closed')).toHaveLength(closedAtOnce);
});

/** What the table's time to live does, sooner or later. */
async function drop(table: Table, which: (sk: string) => boolean): Promise<void> {
  const client = dynamodb.client();
  const { DeleteItemCommand } = await import('@aws-sdk/client-dynamodb');
  for (const { pk, sk } of await dynamodb.dump(table.name)) {
    if (pk?.S === undefined || sk?.S === undefined || !sk.S.startsWith('e/') || !which(sk.S)) continue;
    await client.send(new DeleteItemCommand({ TableName: table.name, Key: { pk, sk } }));
  }
}

test('followers of every stream see each committed event exactly once, in one order, in generated courses', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          stream: fc.constantFrom('acme', 'globex'),
          events: fc.integer({ min: 1, max: 3 }),
          held: fc.boolean(),
        }),
        {
          minLength: 1,
          maxLength: 8,
        },
      ),
      fc.array(fc.constantFrom('read', 'wait', 'release', 'newest'), { maxLength: 12 }),
      async (writes, steps) => {
        const table = await Table.make();
        const reader = table.open();
        const committed: string[] = [];
        const pending: { release(): void; readonly done: Promise<void> }[] = [];
        const followed = new Map<string, { cursor: string | undefined; readonly seen: string[] }>(
          ['acme', 'globex'].map((stream) => [stream, { cursor: undefined, seen: [] }]),
        );
        const read = async () => {
          for (const [stream, follower] of followed) {
            const found = await reader.outbox(follower.cursor, 2, stream);
            follower.seen.push(...ids(found).map((id) => `${stream} ${id}`));
            follower.cursor = found.at(-1)?.cursor ?? follower.cursor;
          }
        };
        const act = {
          read,
          wait: async () => table.clock.advance(graceMs),
          release: async () => pending.shift()?.release(),
          newest: async () => void (await reader.newestCursor()),
        };
        for (const [i, { stream, events, held }] of writes.entries()) {
          const names = Array.from({ length: events }, (_, n) => `${i}.${n}`);
          const all = names.map((name) => table.event(name, stream));
          committed.push(...names.map((name) => `${stream} ${name}`));
          const writer = held ? table.slow() : undefined;
          const done = (writer?.store ?? reader).transact([], all);
          if (writer) {
            await writer.sent;
            pending.push({ release: writer.release, done });
          } else await done;
          const step = steps[i];
          if (step) await act[step]();
        }
        for (const step of steps.slice(writes.length)) await act[step]();
        const last = pending.map(({ release, done }) => {
          release();
          return done;
        });
        for (const { release } of pending) release();
        await Promise.all(last);
        table.clock.advance(graceMs);
        for (let i = 0; i < committed.length + 2; i += 1) await read();
        const seen = [...followed.values()].flatMap((follower) => follower.seen);
        expect([...seen].sort()).toEqual([...committed].sort());
      },
    ),
    { numRuns: 12 },
  );
});

test('of a stream that was ended nothing remains, its name neither, once its places are gone', async () => {
  const table = await Table.make();
  const store = table.open();
  await store.transact([], [table.event('a', 'acme'), table.event('b', 'globex')]);
  await store.endStream('acme');
  await store.transact([], [table.event('c', 'acme')]);
  const items = (await dynamodb.dump(table.name)) as readonly Record<
    string,
    { readonly S?: string; readonly N?: string }
  >[];
  const staying = items.filter(({ ttl }) => ttl === undefined).map(({ pk, sk }) => `${pk?.S} ${sk?.S}`);
  expect(staying.sort()).toEqual(['§outbox globex', '§outbox/globex head']);
  const ends = (of: string): number[] =>
    items.filter(({ pk, sk }) => pk?.S === '§outbox/acme' && sk?.S?.startsWith(of)).map(({ ttl }) => Number(ttl?.N));
  expect(Math.min(...ends('head'))).toBeGreaterThan(Math.max(...ends('e/')));
});
