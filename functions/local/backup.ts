/**
 * Copies of a data directory: made while its broker runs, and put back while none does. A copy has what the directory has - database, authority
 * and serving certificate, the key that secrets of webhooks are sealed with - hence is as secret as that.
 */
import { copyFile, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { openDatabase } from '#control/adapters/sqlite/driver.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { lockDirectory } from './data-lock.ts';
import { makePrivateDirectory } from './private-files.ts';

export const database = 'broker.db';
/** Beside the database: everything else that a broker writes and reads again. */
const others = ['webhooks.key', 'tls/ca-key.pem', 'tls/ca.pem', 'tls/serving.pem'] as const;

const refuse = (field: string, value: string, why: string, remedy: string): AppError =>
  new AppError('invalid_input', `${field} ${value} ${why}`, { detail: { field, value, remedy } });

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}

async function mustBeEmpty(field: string, dir: string): Promise<void> {
  const found = await readdir(dir).catch(() => []);
  if (found.length > 0) throw refuse(field, dir, 'is not empty', 'name a directory that is empty or does not exist');
}

/** One consistent state of the database: SQLite reads it in a transaction of its own, and writers go on meanwhile. */
function copyDatabase(from: string, to: string): void {
  const db = openDatabase(from);
  try {
    db.exec('PRAGMA busy_timeout = 10000');
    db.exec(`VACUUM INTO '${to.replaceAll("'", "''")}'`);
  } finally {
    db.close();
  }
}

/** Throws when the file is damaged. */
function check(field: string, file: string): void {
  const found = faultIn(file);
  if (found !== 'ok') throw refuse(field, file, `is damaged: ${found}`, 'use another backup');
}

function faultIn(file: string): string | undefined {
  const db = openDatabase(file);
  try {
    const found = db.prepare('PRAGMA integrity_check').get() as { readonly integrity_check?: string } | undefined;
    return found?.integrity_check;
  } catch (error) {
    return messageOf(error);
  } finally {
    db.close();
  }
}

async function copyOthers(from: string, to: string): Promise<void> {
  for (const name of others) {
    const file = path.join(from, name);
    if (!(await exists(file))) continue;
    await mkdir(path.dirname(path.join(to, name)), { recursive: true, mode: 0o700 });
    await copyFile(file, path.join(to, name));
  }
}

/** Whole or not at all: what is not finished has another name. `to` must be empty or not exist. */
export async function backUp(dataDir: string, to: string): Promise<void> {
  if (!(await exists(path.join(dataDir, database)))) {
    throw refuse('data', dataDir, `has no ${database}`, 'name the --data directory of the broker');
  }
  await mustBeEmpty('to', to);
  const unfinished = `${path.resolve(to)}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await makePrivateDirectory(unfinished);
  try {
    copyDatabase(path.join(dataDir, database), path.join(unfinished, database));
    check('to', path.join(unfinished, database));
    await copyOthers(dataDir, unfinished);
    await rm(to, { recursive: true, force: true });
    await rename(unfinished, to);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}

/** `in_use` while a broker runs on `dataDir`, which must be empty or not exist: what it has is never overwritten. */
export async function restore(from: string, dataDir: string): Promise<void> {
  if (!(await exists(path.join(from, database)))) {
    throw refuse('from', from, `has no ${database}`, 'name a directory that `isthmus broker backup` made');
  }
  const found = (await readdir(dataDir).catch(() => [])).filter((name) => name !== 'broker.lock');
  if (found.length > 0) {
    throw refuse('data', dataDir, 'is not empty', 'move what is there aside, or name another directory');
  }
  check('from', path.join(from, database));
  await makePrivateDirectory(dataDir);
  const unlock = lockDirectory(dataDir);
  try {
    await copyOthers(from, dataDir);
    // Last: a broker that is started on half a copy finds no database, and the next restore finds a directory that is not empty.
    copyDatabase(path.join(from, database), path.join(dataDir, database));
  } finally {
    unlock();
  }
}
