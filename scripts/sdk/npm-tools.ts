/** What generates and compiles the TypeScript client: in the cache, by a lock file of its own, since it needs another compiler than this repository. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { withFileLock } from '#scripts/setup/file-lock.ts';
import { runCommand } from '#scripts/setup/run-command.ts';

export interface NpmTools {
  /** Scripts for node. */
  readonly openApiTypescript: string;
  readonly compiler: string;
  readonly packageFile: string;
}

interface Places {
  readonly root: string;
  readonly cache: string;
  readonly log: (line: string) => void;
}

export async function npmTools({ root, cache, log }: Places): Promise<NpmTools> {
  const source = path.join(root, 'scripts', 'sdk', 'typescript-tools');
  const lock = await readFile(path.join(source, 'package-lock.json'));
  const folder = path.join(cache, 'sdk-tools', createHash('sha256').update(lock).digest('hex').slice(0, 16));
  await withFileLock(path.join(cache, 'locks', 'sdk-tools'), async () => {
    if (existsSync(folder)) return;
    log('installing openapi-typescript into the cache');
    const partial = `${folder}.partial`;
    await rm(partial, { recursive: true, force: true });
    await mkdir(path.dirname(partial), { recursive: true });
    await cp(source, partial, { recursive: true });
    await runCommand('npm', ['ci', '--no-audit', '--no-fund'], { cwd: partial });
    await rename(partial, folder);
  });
  const modules = path.join(folder, 'node_modules');
  return {
    openApiTypescript: path.join(modules, 'openapi-typescript', 'bin', 'cli.js'),
    compiler: path.join(modules, 'typescript', 'bin', 'tsc'),
    packageFile: path.join(folder, 'package.json'),
  };
}
