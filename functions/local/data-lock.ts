/** One broker per data directory: two would each think the other's doorbells are their own. */
import path from 'node:path';
import { openDatabase } from '#control/adapters/sqlite/driver.ts';
import { resultOf } from '#control/adapters/sqlite/sqlite-errors.ts';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * Held by SQLite's own lock on a file of the directory: a lock of the file system, which the kernel keeps by the file. So it holds for every
 * process that sees the volume, in every container and namespace, and ends with the process, also when that is killed.
 */
export function lockDirectory(dir: string): () => void {
  const lock = openDatabase(path.join(dir, 'broker.lock'));
  try {
    lock.exec('PRAGMA busy_timeout = 0');
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (resultOf(error) !== 'BUSY') throw error;
    throw new AppError('in_use', `another broker is using the data directory ${dir}; stop it, or name another --data`, {
      cause: error,
      detail: { field: 'data', value: dir, remedy: 'stop the other broker, or name another --data directory' },
    });
  }
  return () => lock.close();
}
