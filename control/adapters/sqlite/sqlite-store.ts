/** The store in one SQLite file: the embedded default. WAL with synchronous=FULL, so that what was acknowledged survives a power cut. */
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import {
  type Addition,
  checkKeys,
  checkTransaction,
  fits,
  type Item,
  type Key,
  type Many,
  type Op,
  type OutboxEvent,
  type Store,
} from '../../ports/store.ts';
import { conflict, expectedVersion, isVersioned } from '../../ports/store-conflict.ts';
import { type Database, openDatabase, type Statement } from './driver.ts';
import { currentFormat, formatOf } from './formats.ts';
import { createGroupCommit } from './group-commit.ts';
import { createReadTurns } from './read-turns.ts';
import { storageError } from './sqlite-errors.ts';

const schema = `
  CREATE TABLE IF NOT EXISTS item (
    pk TEXT NOT NULL, sk TEXT NOT NULL, value TEXT NOT NULL, version INTEGER NOT NULL, expires_at INTEGER,
    PRIMARY KEY (pk, sk)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS item_expiry ON item (expires_at) WHERE expires_at IS NOT NULL;
  CREATE TABLE IF NOT EXISTS outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, at INTEGER NOT NULL, event TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS outbox_stream ON outbox (stream, seq);
  CREATE INDEX IF NOT EXISTS outbox_at ON outbox (at);
`;
/** Items of a read that takes no turn. */
const shortRead = 10;
/** Keys that one turn reads: each is a statement of its own. */
const turnOfKeys = 25;
const outboxKeptMs = 24 * 3_600_000;
const cursorOf = (seq: number): string => String(seq).padStart(16, '0');

interface Row {
  readonly sk: string;
  readonly value: string;
  readonly version: number;
  readonly expires_at: number | null;
}

export interface SqliteStoreOptions {
  /** Path of the file, or `:memory:`. */
  readonly path: string;
  readonly clock: Clock;
  /** Opens the file; tests put a database here that dies between two statements. */
  readonly open?: (path: string) => Database;
}

export function openSqliteStore({ path, clock, open = openDatabase }: SqliteStoreOptions): Store {
  const db = open(path);
  prepareDatabase(db, path);
  const statement = statements(db);
  let closed = false;

  const ready = (signal?: AbortSignal): void => {
    signal?.throwIfAborted();
    if (closed) throw new AppError('internal', 'the store is closed');
  };

  const rowOf = ({ pk, sk }: Key): Row | undefined => statement.get.get(pk, sk, clock.now()) as Row | undefined;

  function apply(op: Op, text: string | undefined): void {
    if (op.op === 'check') return;
    if (op.op === 'delete' || op.op === 'clear') {
      statement.remove.run(op.pk, op.sk);
      return;
    }
    if (op.op === 'add') {
      const found = rowOf(op);
      statement.put.run(op.pk, op.sk, String(sum(op, found)), (found?.version ?? 0) + 1, null);
      return;
    }
    const version = isVersioned(op) ? expectedVersion(op) + 1 : 1;
    statement.put.run(op.pk, op.sk, text ?? 'null', version, op.expiresAt ?? null);
  }

  const group = createGroupCommit(db);
  const turns = createReadTurns();

  function check(ops: readonly Op[]): void {
    ops.forEach((op, index) => {
      if (op.op === 'set' || op.op === 'clear') return;
      const found = rowOf(op);
      const holds = op.op === 'add' ? fits(op, sum(op, found)) : (found?.version ?? 0) === expectedVersion(op);
      if (!holds) throw conflict(op, index, found?.version ?? 0);
    });
  }

  return {
    async get<T>(pk: string, sk: string, signal?: AbortSignal) {
      ready(signal);
      const row = statement.get.get(pk, sk, clock.now()) as Row | undefined;
      return row && itemOf<T>(pk, row);
    },

    async getMany<T>({ keys }: Many, signal?: AbortSignal) {
      checkKeys(keys);
      const items: (Item<T> | undefined)[] = [];
      for (let from = 0; from < keys.length; from += turnOfKeys) {
        if (keys.length > shortRead) await turns.take(keys[0]?.pk ?? '');
        ready(signal);
        for (const at of keys.slice(from, from + turnOfKeys)) {
          const row = rowOf(at);
          items.push(row && itemOf<T>(at.pk, row));
        }
      }
      return items;
    },

    async query<T>(
      { partition, from, to, limit, cursor, reverse }: Parameters<Store['query']>[0],
      signal?: AbortSignal,
    ) {
      if (limit > shortRead) await turns.take(partition);
      ready(signal);
      const after = reverse ? undefined : cursor;
      const before = reverse ? cursor : undefined;
      const rows = (reverse ? statement.down : statement.up).all(
        partition,
        from ?? '',
        after ?? '',
        lower(to, before),
        clock.now(),
        limit + 1,
      ) as Row[];
      const items = rows.slice(0, limit).map((row) => itemOf<T>(partition, row));
      const last = items.at(-1);
      return rows.length > limit && last ? { items, cursor: last.sk } : { items };
    },

    async transact(ops, events = [], signal) {
      ready(signal);
      const texts = checkTransaction(ops, events);
      try {
        await group.commit({
          check() {
            signal?.throwIfAborted();
            check(ops);
          },
          write() {
            ops.forEach((op, index) => {
              apply(op, texts[index]);
            });
            for (const event of events) statement.emit.run(event.stream, event.at, JSON.stringify(event));
          },
        });
      } catch (error) {
        throw storageError(error, path);
      }
    },

    async outbox(after, limit, stream, signal) {
      // The bus of this process, which reads all streams, waits for no tenant.
      if (stream !== undefined && limit > shortRead) await turns.take(stream);
      ready(signal);
      const from = after === undefined ? 0 : Number(after);
      const rows = (
        stream === undefined ? statement.outbox.all(from, limit) : statement.outboxOf.all(stream, from, limit)
      ) as { readonly seq: number; readonly event: string }[];
      return rows.map(({ seq, event }) => ({ ...(JSON.parse(event) as OutboxEvent), cursor: cursorOf(seq) }));
    },

    async newestCursor(_stream, signal) {
      ready(signal);
      const row = statement.newest.get() as { readonly seq: number } | undefined;
      return cursorOf(row?.seq ?? 0);
    },

    /** Events are all that there is of a stream. */
    async endStream(_stream, signal) {
      ready(signal);
    },

    async sweep(signal) {
      ready(signal);
      const now = clock.now();
      try {
        statement.expire.run(now);
        statement.forget.run(now - outboxKeptMs);
      } catch (error) {
        throw storageError(error, path);
      }
    },

    async close() {
      if (closed) return;
      closed = true;
      group.flush();
      db.close();
    },
  };
}

const sum = ({ by }: Addition, counter: Row | undefined): number => Number(counter?.value ?? 0) + by;

/** The smaller of two exclusive upper bounds; beyond every printable key when there is none. */
const lower = (a: string | undefined, b: string | undefined): string =>
  [a, b].filter((bound) => bound !== undefined).reduce((x, y) => (x < y ? x : y), '\x7f');

const itemOf = <T>(pk: string, { sk, value, version, expires_at }: Row): Item<T> => ({
  pk,
  sk,
  value: JSON.parse(value) as T,
  version,
  ...(expires_at === null ? {} : { expiresAt: expires_at }),
});

function prepareDatabase(db: Database, path: string): void {
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON');
  const found = formatOf(db);
  if (found > currentFormat || (found > 0 && found < currentFormat)) {
    db.close();
    const [whose, remedy] =
      found > currentFormat
        ? ['a newer program', 'run that version or newer']
        : ['an older program', 'upgrade it with `isthmus broker upgrade`'];
    throw new AppError(
      'host_unsupported',
      `${path} was written by ${whose} (format ${found}, this one reads ${currentFormat}); ${remedy}`,
    );
  }
  db.exec(schema);
  db.exec(`PRAGMA user_version = ${currentFormat}`);
}

/** `sk > ''` holds for every key, so that one statement serves with and without a cursor. */
function statements(db: Database): Readonly<Record<Name, Statement>> {
  const alive = '(expires_at IS NULL OR expires_at > ?)';
  const page = `SELECT sk, value, version, expires_at FROM item WHERE pk = ? AND sk >= ? AND sk > ? AND sk < ? AND ${alive}`;
  return {
    get: db.prepare(`SELECT sk, value, version, expires_at FROM item WHERE pk = ? AND sk = ? AND ${alive}`),
    up: db.prepare(`${page} ORDER BY sk LIMIT ?`),
    down: db.prepare(`${page} ORDER BY sk DESC LIMIT ?`),
    put: db.prepare('INSERT OR REPLACE INTO item (pk, sk, value, version, expires_at) VALUES (?, ?, ?, ?, ?)'),
    remove: db.prepare('DELETE FROM item WHERE pk = ? AND sk = ?'),
    emit: db.prepare('INSERT INTO outbox (stream, at, event) VALUES (?, ?, ?)'),
    outbox: db.prepare('SELECT seq, event FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?'),
    outboxOf: db.prepare('SELECT seq, event FROM outbox WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?'),
    newest: db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'"),
    expire: db.prepare('DELETE FROM item WHERE expires_at <= ?'),
    forget: db.prepare('DELETE FROM outbox WHERE at <= ?'),
  };
}
type Name = 'get' | 'up' | 'down' | 'put' | 'remove' | 'emit' | 'outbox' | 'outboxOf' | 'newest' | 'expire' | 'forget';
