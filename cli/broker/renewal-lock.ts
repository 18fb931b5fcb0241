/**
 * One renewal of a login at a time between the commands of a user. The lock is a folder with one entry, whose name says since when it is held. Each step is one rename or removal of
 * what this command saw, so of two commands that take over the same lock one fails.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { CliIo } from '#cli/output/io.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { configFile, notWritable } from './login-config.ts';

const pauseMs = 100;
/** Longer than a renewal may take, which is discovery and one request of 15 s each: the lock of a command that was killed is taken over after this. */
const lifeMs = 40_000;
/** The lock of a killed command, and then the renewal of the command that took it over. */
const patienceMs = 80_000;

type Io = Pick<CliIo, 'clock' | 'signal' | 'env' | 'home'>;

/** Gives what releases it. Rejects with `deadline_exceeded` after 80 s of waiting, with `host_unsupported` when the folder of the configuration cannot be written. */
export async function lockRenewal(io: Io): Promise<() => Promise<void>> {
  const lock = `${configFile(io)}.renewing`;
  const began = io.clock.now();
  for (;;) {
    const own = await acquired(lock, io.clock.now());
    if (own !== undefined) return () => release(lock, own);
    if (io.clock.now() - began > patienceMs)
      throw new AppError(
        'deadline_exceeded',
        `another command has been renewing this login for ${patienceMs / 1_000} s`,
        { detail: { field: 'lock', value: lock, remedy: 'repeat the command, or log in again with `isthmus login`' } },
      );
    await io.clock.sleep(pauseMs, io.signal);
  }
}

/** The entry that this command holds the lock by; undefined while another command does. */
async function acquired(lock: string, now: number): Promise<string | undefined> {
  const own = `${now}-${randomBytes(6).toString('hex')}`;
  try {
    const held = await entryOf(lock);
    if (held === undefined) return (await made(lock, own)) ? own : undefined;
    // A clock that was set back makes it a lock of the future.
    const isOld = Math.abs(now - Number.parseInt(held, 10)) > lifeMs;
    return isOld && (await takenOver(lock, held, own)) ? own : undefined;
  } catch (cause) {
    throw notWritable(lock, cause);
  }
}

async function entryOf(lock: string): Promise<string | undefined> {
  const entries = await readdir(lock).catch(ifAbsent([]));
  return entries[0];
}

/** Made elsewhere and moved to its place, since a folder takes the place of an empty one only. */
async function made(lock: string, own: string): Promise<boolean> {
  const folder = `${lock}.${own}`;
  try {
    await mkdir(folder);
    await writeFile(path.join(folder, own), '');
    // Left by a command that was killed while it gave the lock back. Windows moves nothing to its place.
    await rmdir(lock).catch(ifTaken(undefined));
    return await rename(folder, lock).then(() => true, ifTaken(false));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** False when another command was faster, or the holder gave it back. */
export const takenOver = (lock: string, held: string, own: string): Promise<boolean> =>
  rename(path.join(lock, held), path.join(lock, own)).then(() => true, ifAbsent(false));

/** Leaves a lock that was taken over to the command that has it; what cannot be removed is taken over later. */
async function release(lock: string, own: string): Promise<void> {
  await unlink(path.join(lock, own)).catch(() => undefined);
  await rmdir(lock).catch(() => undefined);
}

const ifCode =
  (...codes: readonly string[]) =>
  <T>(value: T) =>
  (error: NodeJS.ErrnoException): T => {
    if (!codes.includes(error.code ?? '')) throw error;
    return value;
  };
const ifAbsent = ifCode('ENOENT');
/** Of a folder with an entry, for which Windows says EPERM or EACCES, and of one that is gone. */
const ifTaken = ifCode('ENOTEMPTY', 'EEXIST', 'ENOENT', 'EPERM', 'EACCES');
