/** The lock key of an administrator: in one file beside the login, mode 0600. No broker and no cluster ever has the private half. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import * as z from 'zod';
import { configFile, makeFolder } from '#cli/broker/login-config.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Locked, lockText } from '#shared/domain/peering-lock.ts';
import { AppError } from '#shared/errors/app-error.ts';

const Stored = z.object({ privateKey: z.string().min(1) });

export interface LockKey {
  /** base64 of the SubjectPublicKeyInfo: what clusters are told. */
  readonly publicKey: string;
  /** base64. */
  sign(of: Locked): string;
}

/** A SubjectPublicKeyInfo of an Ed25519 key in base64: the first 16 characters say which kind of key it is. */
export const isLockKeyText = (text: string): boolean => /^MCowBQYDK2VwAyEA[A-Za-z0-9+/]{43}=$/.test(text);

type Place = Pick<CliIo, 'env' | 'home'>;
export const lockFile = (io: Place): string => `${configFile(io).replace(/\.json$/, '')}.lock.json`;

function lockKey(pem: string): LockKey {
  const privateKey = createPrivateKey(pem);
  return {
    publicKey: createPublicKey(privateKey).export({ type: 'spki', format: 'der' }).toString('base64'),
    sign: (of) => sign(null, Buffer.from(lockText(of)), privateKey).toString('base64'),
  };
}

/** Undefined: there is none yet. */
export async function readLockKey(io: Place): Promise<LockKey | undefined> {
  const file = lockFile(io);
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return undefined;
    throw new AppError('host_unsupported', `cannot read ${file}: ${cause.message}`, { cause });
  });
  if (text === undefined) return undefined;
  try {
    return lockKey(Stored.parse(JSON.parse(text)).privateKey);
  } catch (cause) {
    throw new AppError('invalid_input', `${file} holds no lock key`, {
      cause,
      detail: { remedy: 'restore it from a backup, or move it away: the next `isthmus lock sign` makes a new key' },
    });
  }
}

async function written(io: Place, put: (temporary: string, file: string) => Promise<void>): Promise<void> {
  const file = lockFile(io);
  const { privateKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await makeFolder(io);
    await writeFile(temporary, `${JSON.stringify({ privateKey: pem }, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
    await put(temporary, file);
  } catch (cause) {
    throw new AppError('host_unsupported', `cannot write ${file}: ${(cause as Error).message}`, { cause });
  } finally {
    await rm(temporary, { force: true });
  }
}

async function mustRead(io: Place): Promise<LockKey> {
  const key = await readLockKey(io);
  if (key !== undefined) return key;
  throw new AppError('host_unsupported', `${lockFile(io)} is gone`);
}

/** Makes one if there is none. Of two commands that do so at once, both get the key that was stored first. */
export async function ownLockKey(io: Place): Promise<LockKey> {
  const known = await readLockKey(io);
  if (known !== undefined) return known;
  await written(io, (temporary, file) =>
    link(temporary, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    }),
  );
  return mustRead(io);
}

/** Replaces the file at once: a reader finds the former key or the new one. */
export async function newLockKey(io: Place): Promise<LockKey> {
  await written(io, rename);
  return mustRead(io);
}
