/**
 * A store that counts the request units which the same calls would consume in DynamoDB through `control/adapters/dynamodb`, from the sizes of
 * the items. `cost.long.test.ts` holds the count against what DynamoDB Local says it consumed.
 */
import { expiryOf } from '#control/adapters/dynamodb/item.ts';
import type { Item, Many, NewEvent, Op, Store } from '#control/ports/store.ts';
import type { Meter } from './meter.ts';

/** Names and values in UTF-8; numbers take about half a byte per digit and one more. */
function itemBytes({ pk, sk, value, version, expiresAt }: Omit<Item, 'version'> & { version: number }): number {
  const number = (n: number) => Math.ceil(String(n).length / 2) + 1;
  const expiry = expiresAt === undefined ? 0 : 6 + number(expiresAt) + number(Number(expiryOf(expiresAt).ttl?.N));
  const text = Buffer.byteLength(JSON.stringify(value) ?? 'null');
  // `w` names a write that stands alone: always counted, at most 19 bytes too much.
  return 2 + pk.length + 2 + sk.length + 3 + text + 3 + number(version) + expiry + 19;
}

const eventBytes = (event: NewEvent): number => Buffer.byteLength(JSON.stringify(event)) + 150;

const readUnits = (bytes: number): number => Math.max(1, Math.ceil(bytes / 4_096));
const writeUnits = (bytes: number): number => Math.max(1, Math.ceil(bytes / 1_024));

export function meteredStore(store: Store, meter: Meter): Store {
  const sized = async (op: Op): Promise<number> => {
    const before = await store.get(op.pk, op.sk);
    const old = before === undefined ? 0 : itemBytes(before);
    if (op.op === 'check' || op.op === 'delete' || op.op === 'clear') return old;
    if (op.op === 'add') return Math.max(old, itemBytes({ ...op, value: op.by, version: 1 }));
    const { pk, sk, value, expiresAt } = op;
    const version = op.op === 'update' ? op.ifVersion + 1 : 1;
    return Math.max(old, itemBytes({ pk, sk, value, version, ...(expiresAt === undefined ? {} : { expiresAt }) }));
  };

  const readPlaces = (stream: string | undefined, events: readonly NewEvent[]): void => {
    meter.tableCalls += 1;
    const bytes = events.reduce((sum, event) => sum + eventBytes(event), 0);
    meter.table(`outbox/${stream ?? ''}`, { reads: readUnits(bytes) });
  };

  return {
    async get<T>(pk: string, sk: string, signal?: AbortSignal) {
      const found = await store.get<T>(pk, sk, signal);
      meter.tableCalls += 1;
      meter.table(pk, { reads: readUnits(found === undefined ? 0 : itemBytes(found)) });
      return found;
    },

    async getMany<T>(many: Many, signal?: AbortSignal) {
      const found = await store.getMany<T>(many, signal);
      const { keys, eventual } = many;
      meter.tableCalls += Math.ceil(keys.length / 100);
      for (const [i, item] of found.entries())
        meter.table(keys[i]?.pk ?? '', {
          reads: readUnits(item === undefined ? 0 : itemBytes(item)) / (eventual ? 2 : 1),
        });
      return found;
    },

    async query<T>(query: Parameters<Store['query']>[0], signal?: AbortSignal) {
      const page = await store.query<T>(query, signal);
      meter.tableCalls += 1;
      const units = readUnits(page.items.reduce((sum, item) => sum + itemBytes(item), 0));
      meter.table(query.partition, { reads: query.eventual ? units / 2 : units });
      return page;
    },

    async transact(ops, events = [], signal) {
      const sizes = await Promise.all(ops.map(sized));
      await store.transact(ops, events, signal);
      const alone = ops.length === 1 && events.length === 0 && (ops[0]?.op === 'put' || ops[0]?.op === 'update');
      meter.tableCalls += alone ? 1 : events.length > 0 ? 2 : 1;
      for (const [i, op] of ops.entries()) {
        meter.table(op.pk, { writes: writeUnits(sizes[i] ?? 0) * (alone ? 1 : 2) });
      }
      // The position of each stream is taken by an update of its own, then the event is part of the transaction.
      for (const stream of new Set(events.map((event) => event.stream))) meter.table(`outbox/${stream}`, { writes: 1 });
      for (const event of events) {
        meter.table(`outbox/${event.stream}`, { writes: 2 * writeUnits(eventBytes(event)) });
      }
    },

    async outbox(after, limit, stream, signal) {
      const found = await store.outbox(after, limit, stream, signal);
      readPlaces(stream, found);
      return found;
    },
    async newestCursor(stream, signal) {
      // The last hundred places are read, for what is open in front of them.
      readPlaces(stream, await store.outbox(undefined, 101, stream));
      return store.newestCursor(stream, signal);
    },
    endStream: (stream, signal) => store.endStream(stream, signal),
    sweep: (signal) => store.sweep(signal),
    close: () => store.close(),
  };
}
