/**
 * The store port: what the control plane needs from a database and nothing more, narrow enough for one DynamoDB table. One contract
 * suite (`store.contract.ts`) runs on every adapter.
 */
import { AppError } from '#shared/errors/app-error.ts';

/** Where an item is: a partition and, inside it, a sort key. Both are 1 to 1,024 printable ASCII characters. */
export interface Key {
  readonly pk: string;
  readonly sk: string;
}

export interface Item<T = unknown> extends Key {
  readonly value: T;
  /** 1 when put; each update adds 1. A deleted and re-put item starts at 1 again: give re-created things fresh keys. */
  readonly version: number;
  /** Milliseconds since the epoch; from then on the item is absent for every method, whether or not it was swept. */
  readonly expiresAt?: number;
}

interface Write extends Key {
  /** A JSON value of at most 400 KB. Members that are `undefined` are dropped. */
  readonly value: unknown;
  readonly expiresAt?: number;
}

/** One condition, and for all but `check` one write, of a transaction. */
export type Op =
  /** The item must be absent; it becomes version 1. */
  | ({ readonly op: 'put' } & Write)
  /** The item must have exactly this version; it becomes `ifVersion + 1`. An absent `expiresAt` clears the old one. */
  | ({ readonly op: 'update'; readonly ifVersion: number } & Write)
  | ({ readonly op: 'delete'; readonly ifVersion: number } & Key)
  /**
   * Puts or replaces, and removes, without a condition: for what another item of the same transaction is found by, whose condition holds for both. A set
   * item has version 1.
   */
  | ({ readonly op: 'set' } & Write)
  | ({ readonly op: 'clear' } & Key)
  /** Writes nothing. `ifVersion: 0` means the item must be absent. */
  | ({ readonly op: 'check'; readonly ifVersion: number } & Key)
  /**
   * Adds to a counter: an item whose value is a whole number, 0 while it is absent. Additions of several writers do not conflict with each other, unless
   * the sum would be more than `atMost`, which fails with `version_conflict`. Only a condition beside it keeps a transaction that is repeated after a lost
   * answer from counting twice, hence no transaction consists of these three alone.
   */
  | ({ readonly op: 'add'; readonly by: number; readonly atMost?: number } & Key);

export type Addition = Extract<Op, { readonly op: 'add' }>;

/** What a change says to the rest of the world. Written by the transaction that makes the change, or not at all. */
export interface NewEvent {
  readonly id: string;
  /** Feeds are read per stream; the stream of a tenant's events is its name. */
  readonly stream: string;
  readonly type: string;
  /** What it is about: `peering/pe_…`, `cluster/rome`. */
  readonly subject: string;
  readonly at: number;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface OutboxEvent extends NewEvent {
  /** Opaque position: hand it to `outbox` as `after`. */
  readonly cursor: string;
}

export interface Query {
  readonly partition: string;
  /** First sort key, inclusive. */
  readonly from?: string;
  /** End of the sort keys, exclusive. */
  readonly to?: string;
  readonly limit: number;
  /** From the previous page of the same query. */
  readonly cursor?: string;
  readonly reverse?: boolean;
  /** May miss what was written within the last second, for half the price: for what is asked again in a minute. */
  readonly eventual?: boolean;
}

export interface Many {
  /** At most 200. */
  readonly keys: readonly Key[];
  /** As in a query. */
  readonly eventual?: boolean;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Present when there may be more. */
  readonly cursor?: string;
}

/**
 * Keeps items and the outbox. Reads are strongly consistent: they see every transaction acknowledged before they began. Values are
 * copies; changing one changes nothing stored. Trouble with the database itself is thrown as it comes.
 */
export interface Store {
  get<T>(pk: string, sk: string, signal?: AbortSignal): Promise<Item<T> | undefined>;
  /** The items at these keys, in their order; undefined where there is none. Each is as `get` reads it, but not all of one moment. */
  getMany<T>(many: Many, signal?: AbortSignal): Promise<readonly (Item<T> | undefined)[]>;
  /** Items of one partition in ascending (or `reverse`, descending) byte order of their sort key. */
  query<T>(query: Query, signal?: AbortSignal): Promise<Page<Item<T>>>;
  /**
   * All or nothing, isolated, and durable once the promise resolves. At most 100 operations and events together, no key twice.
   * Fails with `version_conflict` when a condition does not hold (nothing is written; read again and decide again), with
   * `too_large` or `invalid_input` when the limits above are broken.
   */
  transact(ops: readonly Op[], events?: readonly NewEvent[], signal?: AbortSignal): Promise<void>;
  /**
   * Events after a position (undefined: from the oldest kept), of one stream or of all. The order is such that an event never appears
   * before a cursor that was already handed out, hence a follower misses none. Events are kept for at least 24 hours.
   */
  outbox(
    after: string | undefined,
    limit: number,
    stream?: string,
    signal?: AbortSignal,
  ): Promise<readonly OutboxEvent[]>;
  /**
   * The position after everything committed so far, of one stream or of all. A stream's position is for reading that stream, one of all
   * streams for both.
   */
  newestCursor(stream?: string, signal?: AbortSignal): Promise<string>;
  /**
   * Nothing new is meant to come in this stream. What is in it stays as readable as before and goes when its time has come, and then nothing of
   * the stream remains. Repeating it, or ending a stream that never was, changes nothing.
   */
  endStream(stream: string, signal?: AbortSignal): Promise<void>;
  /** Removes what expired and outbox events older than they must be kept. Safe to call at any time, and never necessary for correctness. */
  sweep(signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** Whether a counter may become `sum`. Taking away is never refused: it may have to come down from above a limit that was lowered. */
export const fits = ({ by, atMost }: Addition, sum: number): boolean =>
  by <= 0 || atMost === undefined || sum <= atMost;

export const maxOps = 100;
const maxKeys = 200;
export const maxValueBytes = 400 * 1024;

const keyPattern = /^[\x20-\x7e]{1,1024}$/;

/** What a transaction must satisfy on every adapter; returns the values as JSON text, by operation. */
export function checkTransaction(ops: readonly Op[], events: readonly NewEvent[]): (string | undefined)[] {
  const total = ops.length + events.length;
  if (total > maxOps) {
    throw new AppError('too_large', `a transaction takes at most ${maxOps} operations and events, got ${total}`);
  }
  const seen = new Set<string>();
  if (ops.length > 0 && ops.every(({ op }) => op === 'add' || op === 'set' || op === 'clear'))
    throw new AppError('invalid_input', 'a transaction without a condition needs one');
  return ops.map((op) => {
    if (!keyPattern.test(op.pk) || !keyPattern.test(op.sk)) {
      throw new AppError(
        'invalid_input',
        `keys are 1 to 1024 printable ASCII characters, got ${JSON.stringify([op.pk, op.sk])}`,
      );
    }
    const key = `${op.pk}\n${op.sk}`;
    if (seen.has(key))
      throw new AppError('invalid_input', `key ${JSON.stringify([op.pk, op.sk])} is twice in one transaction`);
    seen.add(key);
    if (op.op !== 'put' && op.op !== 'update' && op.op !== 'set') return undefined;
    const text = JSON.stringify(op.value);
    if (text === undefined) throw new AppError('invalid_input', `the value of ${JSON.stringify(op.sk)} is not JSON`);
    const bytes = Buffer.byteLength(text);
    if (bytes > maxValueBytes) {
      throw new AppError(
        'too_large',
        `an item is at most ${maxValueBytes} bytes, ${JSON.stringify(op.sk)} has ${bytes}`,
      );
    }
    return text;
  });
}

export function checkKeys(keys: readonly Key[]): void {
  if (keys.length > maxKeys)
    throw new AppError('too_large', `at most ${maxKeys} items are read at once, got ${keys.length}`);
}

/** The bounds of all sort keys that begin with `prefix`. */
export const withPrefix = (prefix: string): { readonly from: string; readonly to: string } => ({
  from: prefix,
  to: `${prefix}\x7f`,
});
