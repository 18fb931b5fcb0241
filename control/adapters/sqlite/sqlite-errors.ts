/** What SQLite says about the file and its disk, as errors of ours: which of them passes by itself, and what to do about the others. */
import { statfsSync } from 'node:fs';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';

const names = {
  5: 'BUSY',
  6: 'LOCKED',
  8: 'READONLY',
  10: 'IOERR',
  11: 'CORRUPT',
  13: 'FULL',
  14: 'CANTOPEN',
} as const;
type Name = (typeof names)[keyof typeof names];

/** The primary result code. node:sqlite says it as a number, better-sqlite3 as a name; undefined: not of SQLite, or none of these. */
export function resultOf(error: unknown): Name | undefined {
  const { code, errcode } = error as { readonly code?: unknown; readonly errcode?: unknown };
  if (typeof errcode === 'number') return names[(errcode & 0xff) as keyof typeof names];
  const name = typeof code === 'string' ? /^SQLITE_([A-Z]+)/.exec(code)?.[1] : undefined;
  return Object.values(names).find((one) => one === name);
}

/** Fewer free bytes than this, and an input/output error is a full disk: shared memory of the log cannot grow either. */
const nothingLeft = 1024 * 1024;

function isFull(file: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path.dirname(file));
    return bavail * bsize < nothingLeft;
  } catch {
    return false;
  }
}

/** Anything else comes back as it is. */
export function storageError(error: unknown, file: string): unknown {
  const result = resultOf(error);
  if (result === undefined) return error;
  const { message } = error as Error;
  if (result === 'BUSY' || result === 'LOCKED') {
    return new AppError('store_busy', 'another process holds the database; it is tried again', { cause: error });
  }
  if (result === 'FULL' || (result === 'IOERR' && isFull(file))) {
    return new AppError('storage_full', `the disk of ${file} is full: nothing can be changed until there is room`, {
      cause: error,
    });
  }
  return new AppError('storage_unwritable', `${file} cannot be used: ${message}`, { cause: error });
}
