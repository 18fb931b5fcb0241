/** The lock of a data directory, between two network namespaces, as two containers on one volume have them. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { lockDirectory } from './data-lock.ts';

const run = promisify(execFile);
const dir = mkdtempSync(path.join(tmpdir(), 'isthmus-lock-'));
const module = path.join(repositoryRoot, '.build', 'run', `data-lock-${process.pid}.mjs`);

beforeAll(() =>
  build({
    absWorkingDir: repositoryRoot,
    entryPoints: ['functions/local/data-lock.ts'],
    outfile: module,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'warning',
  }),
);
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
  rmSync(module, { force: true });
});

/** What a process in a network namespace of its own hears when it takes the lock. */
async function elsewhere(): Promise<string> {
  const script = `import(process.argv[1]).then(({ lockDirectory }) => lockDirectory(process.argv[2])).then(() => 'taken', (error) => error.code).then(console.log)`;
  const { stdout } = await run('unshare', ['--net', process.execPath, '-e', script, module, dir]);
  return stdout.trim();
}

test('one process at a time has the directory, in the same namespace or in another, and its end ends the lock', async () => {
  const unlock = lockDirectory(dir);
  expect(await elsewhere()).toBe('in_use');
  unlock();
  expect(await elsewhere()).toBe('taken');
  lockDirectory(dir)();
});
