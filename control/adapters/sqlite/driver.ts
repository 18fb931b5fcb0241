/** The few calls that we need of SQLite, from `node:sqlite` when this Node has it and from better-sqlite3 otherwise. */
import { createRequire } from 'node:module';
import { AppError } from '#shared/errors/app-error.ts';

type Value = string | number | null;

export interface Statement {
  run(...values: Value[]): unknown;
  get(...values: Value[]): unknown;
  all(...values: Value[]): unknown[];
}

export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

type Open = new (path: string) => Database;
const require = createRequire(import.meta.url);

/** better-sqlite3 is bound to one Node ABI and node:sqlite is missing before Node 22: whichever loads. */
function loadDriver(): Open {
  try {
    return withoutExperimentalWarning(() => (require('node:sqlite') as { DatabaseSync: Open }).DatabaseSync);
  } catch (absent) {
    try {
      return require('better-sqlite3') as Open;
    } catch (cause) {
      throw new AppError(
        'host_unsupported',
        'SQLite is missing: run Node 22 or newer, or install the optional dependency better-sqlite3 for this Node',
        { cause: new AggregateError([absent, cause]) },
      );
    }
  }
}

/** node:sqlite prints a warning at its first load that is of no use in the output of a broker. */
function withoutExperimentalWarning<T>(work: () => T): T {
  const emit = process.emitWarning;
  process.emitWarning = () => undefined;
  try {
    return work();
  } finally {
    process.emitWarning = emit;
  }
}

export const openDatabase = (path: string): Database => new (loadDriver())(path);
