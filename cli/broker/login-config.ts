/** Where the user is logged in: one file, mode 0600. */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import * as z from 'zod';
import type { CliIo } from '#cli/output/io.ts';
import { AppError } from '#shared/errors/app-error.ts';

const Login = z.object({
  url: z.url({ protocol: /^https$/ }),
  key: z.string().min(1),
  /** Absent: the broker's certificate is publicly trusted. */
  caPem: z.string().optional(),
  /** Of a login by an identity provider, whose ID token is the key then. */
  tenant: z.string().optional(),
  provider: z
    .object({
      issuer: z.string(),
      clientId: z.string(),
      refreshToken: z.string().optional(),
      /** When the key ends, in milliseconds since the Unix epoch. */
      expiresAt: z.number(),
    })
    .optional(),
});
export type Login = z.infer<typeof Login>;

/** Made by `isthmus broker serve`: makes tenants, and is in none. */
export const isOperatorKey = (key: string): boolean => key.startsWith('iso_');

export function configFile({ env, home }: Pick<CliIo, 'env' | 'home'>): string {
  if (env.ISTHMUS_CONFIG) return env.ISTHMUS_CONFIG;
  const base = env.XDG_CONFIG_HOME || path.join(home, '.config');
  return path.join(base, 'isthmus', 'config.json');
}

export const makeFolder = async (io: Pick<CliIo, 'env' | 'home'>): Promise<void> => {
  await mkdir(path.dirname(configFile(io)), { recursive: true, mode: 0o700 });
};

export async function saveLogin(io: Pick<CliIo, 'env' | 'home'>, login: Login): Promise<string> {
  const file = configFile(io);
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await makeFolder(io);
    await writeFile(temporary, `${JSON.stringify(login, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
    await chmod(temporary, 0o600);
    await rename(temporary, file);
  } catch (cause) {
    await rm(temporary, { force: true });
    throw notWritable(file, cause);
  }
  return file;
}

export const notWritable = (file: string, cause: unknown): AppError =>
  new AppError('host_unsupported', `cannot write ${file}: ${(cause as Error).message}`, {
    cause,
    detail: { remedy: 'name a writable file in ISTHMUS_CONFIG' },
  });

/** Fails with `unauthenticated` without a login. */
export async function loadLogin(io: Pick<CliIo, 'env' | 'home'>): Promise<Login> {
  const file = configFile(io);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    throw new AppError('unauthenticated', `not logged in to a broker: ${file} cannot be read`, {
      cause,
      detail: { remedy: 'log in with `isthmus login URL --key KEY`; `isthmus broker serve` prints the line' },
    });
  }
  try {
    return Login.parse(JSON.parse(text));
  } catch (cause) {
    throw new AppError('invalid_input', `${file} is not a configuration of isthmus`, {
      cause,
      detail: { field: 'ISTHMUS_CONFIG', value: file, remedy: 'log in again with `isthmus login URL --key KEY`' },
    });
  }
}
