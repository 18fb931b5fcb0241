/** The store in memory: for tests and short-lived brokers. Enforces everything the port promises but durability. */
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import {
  type Addition,
  checkKeys,
  checkTransaction,
  fits,
  type Item,
  type Many,
  type OutboxEvent,
  type Store,
} from '../../ports/store.ts';
import { conflict, expectedVersion, isVersioned } from '../../ports/store-conflict.ts';

interface Row {
  readonly text: string;
  readonly version: number;
  readonly expiresAt?: number;
}

const outboxKeptMs = 24 * 3_600_000;
const cursorOf = (seq: number): string => String(seq).padStart(16, '0');

export function createMemoryStore({ clock }: { readonly clock: Clock }): Store {
  const partitions = new Map<string, Map<string, Row>>();
  let outbox: { readonly seq: number; readonly event: string }[] = [];
  let seq = 0;
  let closed = false;

  const open = (signal?: AbortSignal): void => {
    signal?.throwIfAborted();
    if (closed) throw new AppError('internal', 'the store is closed');
  };

  function row(pk: string, sk: string): Row | undefined {
    const found = partitions.get(pk)?.get(sk);
    return found?.expiresAt !== undefined && found.expiresAt <= clock.now() ? undefined : found;
  }

  const sum = ({ pk, sk, by }: Addition): number => Number(row(pk, sk)?.text ?? 0) + by;

  const itemOf = <T>(pk: string, sk: string, { text, version, expiresAt }: Row): Item<T> => ({
    pk,
    sk,
    value: JSON.parse(text) as T,
    version,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  });

  function write(pk: string, sk: string, value: Row | undefined): void {
    const partition = partitions.get(pk) ?? new Map<string, Row>();
    partitions.set(pk, partition);
    if (value) partition.set(sk, value);
    else partition.delete(sk);
    if (partition.size === 0) partitions.delete(pk);
  }

  return {
    async get<T>(pk: string, sk: string, signal?: AbortSignal) {
      open(signal);
      const found = row(pk, sk);
      return found && itemOf<T>(pk, sk, found);
    },

    async getMany<T>({ keys }: Many, signal?: AbortSignal) {
      open(signal);
      checkKeys(keys);
      return keys.map(({ pk, sk }) => {
        const found = row(pk, sk);
        return found && itemOf<T>(pk, sk, found);
      });
    },

    async query<T>(
      { partition, from, to, limit, cursor, reverse }: Parameters<Store['query']>[0],
      signal?: AbortSignal,
    ) {
      open(signal);
      const keys = [...(partitions.get(partition)?.keys() ?? [])]
        .filter((sk) => (from === undefined || sk >= from) && (to === undefined || sk < to))
        .filter((sk) => cursor === undefined || (reverse ? sk < cursor : sk > cursor))
        .sort((a, b) => (a < b ? -1 : 1));
      if (reverse) keys.reverse();
      const items: Item<T>[] = [];
      for (const sk of keys) {
        const found = row(partition, sk);
        if (!found) continue;
        if (items.length === limit) return { items, cursor: items.at(-1)?.sk ?? '' };
        items.push(itemOf<T>(partition, sk, found));
      }
      return { items };
    },

    async transact(ops, events = [], signal) {
      open(signal);
      const texts = checkTransaction(ops, events);
      ops.forEach((op, index) => {
        const found = row(op.pk, op.sk)?.version ?? 0;
        const holds = isVersioned(op) ? found === expectedVersion(op) : op.op !== 'add' || fits(op, sum(op));
        if (!holds) throw conflict(op, index, found);
      });
      ops.forEach((op, index) => {
        if (op.op === 'check') return;
        if (op.op === 'delete' || op.op === 'clear') {
          write(op.pk, op.sk, undefined);
          return;
        }
        if (op.op === 'add') {
          write(op.pk, op.sk, { text: String(sum(op)), version: (row(op.pk, op.sk)?.version ?? 0) + 1 });
          return;
        }
        write(op.pk, op.sk, {
          text: texts[index] ?? 'null',
          version: isVersioned(op) ? expectedVersion(op) + 1 : 1,
          ...(op.expiresAt === undefined ? {} : { expiresAt: op.expiresAt }),
        });
      });
      for (const event of events) {
        seq += 1;
        outbox.push({ seq, event: JSON.stringify(event) });
      }
    },

    async outbox(after, limit, stream, signal) {
      open(signal);
      const from = after === undefined ? 0 : Number(after);
      const found: OutboxEvent[] = [];
      for (const entry of outbox) {
        if (entry.seq <= from) continue;
        if (found.length === limit) break;
        const event = JSON.parse(entry.event) as OutboxEvent;
        if (stream === undefined || event.stream === stream) found.push({ ...event, cursor: cursorOf(entry.seq) });
      }
      return found;
    },

    async newestCursor(_stream, signal) {
      open(signal);
      return cursorOf(seq);
    },

    /** Events are all that there is of a stream. */
    async endStream(_stream, signal) {
      open(signal);
    },

    async sweep(signal) {
      open(signal);
      const now = clock.now();
      for (const [pk, partition] of partitions) {
        for (const [sk, { expiresAt }] of partition) {
          if (expiresAt !== undefined && expiresAt <= now) write(pk, sk, undefined);
        }
      }
      outbox = outbox.filter(({ event }) => (JSON.parse(event) as OutboxEvent).at > now - outboxKeptMs);
    },

    async close() {
      closed = true;
    },
  };
}
