/**
 * Data of an older program, brought to the format of this one. Before anything is changed the whole directory is copied beside the database, which is
 * the way back: restored to an empty directory, the copy is what the older program goes on with.
 */
import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { type Database, openDatabase } from '#control/adapters/sqlite/driver.ts';
import { currentFormat, formatOf, upgrade } from '#control/adapters/sqlite/formats.ts';
import { storageError } from '#control/adapters/sqlite/sqlite-errors.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { backUp, database } from './backup.ts';
import { lockDirectory } from './data-lock.ts';

export interface Upgraded {
  readonly from: number;
  readonly to: number;
  /** Where the data is as it was before. Absent: nothing had to be changed. */
  readonly copy?: string;
}

/** The caller has the lock of the directory. A directory without a database is of the newest format. */
export async function upgradeData(dataDir: string, now: number): Promise<Upgraded> {
  const file = path.join(dataDir, database);
  const there = await stat(file).then(
    () => true,
    () => false,
  );
  const from = there ? withDatabase(file, formatOf) : currentFormat;
  // A new file whose tables were never made; one of a newer program is refused by the store, which says so.
  if (from === 0 || from >= currentFormat) return { from, to: from };
  const copy = path.join(dataDir, `before-format-${currentFormat}-${stampOf(now)}`);
  await backUp(dataDir, copy);
  try {
    withDatabase(file, upgrade);
  } catch (error) {
    // The data is as it was: the supervisor of a broker that fails at each start would fill the disk with copies of it.
    await rm(copy, { recursive: true, force: true });
    throw error;
  }
  return { from, to: currentFormat, copy };
}

/** For a directory that no broker runs on: `in_use` otherwise. */
export async function upgradeStopped(dataDir: string, now: number): Promise<Upgraded> {
  const there = await stat(path.join(dataDir, database)).catch(() => undefined);
  if (!there) {
    throw new AppError('invalid_input', `data ${dataDir} has no ${database}`, {
      detail: { field: 'data', value: dataDir, remedy: 'name the --data directory of the broker' },
    });
  }
  const unlock = lockDirectory(dataDir);
  try {
    return await upgradeData(dataDir, now);
  } finally {
    unlock();
  }
}

const stampOf = (now: number): string => new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '');

function withDatabase<T>(file: string, work: (db: Database) => T): T {
  const db = openDatabase(file);
  try {
    return work(db);
  } catch (error) {
    throw storageError(error, file);
  } finally {
    db.close();
  }
}
