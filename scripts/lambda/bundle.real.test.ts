/** Every bundle within its budget, and loadable by the Node that Lambda runs. Import times are printed; `npm run lambda` compares them with the budget. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cloudFunctions } from '#functions/catalogue.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureNode24 } from '#scripts/setup/node24.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { budget } from './budget.ts';
import { type Bundle, bundleFunctions } from './bundle.ts';
import { importMs } from './import-time.ts';

let dir = '';
let bundles: readonly Bundle[] = [];
beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-bundles-'));
  bundles = await bundleFunctions({ root: repositoryRoot, outDir: dir });
});
afterAll(() => rm(dir, { recursive: true, force: true }));

test('there is one for every function of the catalogue, none over 600 KB', () => {
  expect(bundles.map(({ fn }) => fn.name)).toEqual(cloudFunctions.map(({ name }) => name));
  const large = bundles.filter(({ bytes }) => bytes > budget.maxBytes).map(({ fn, bytes }) => `${fn.name}: ${bytes}`);
  expect(large).toEqual([]);
});

test('it holds only the clients that the rights of its function call for', async () => {
  for (const { fn, file } of bundles) {
    const text = await readFile(file, 'utf8');
    const putsEvents = fn.access.includes('bus:publish') || fn.access.includes('event-targets:send');
    expect([fn.name, text.includes('PutEvents')]).toEqual([fn.name, putsEvents]);
    const takesSessions = fn.access.includes('event-targets:send') || fn.access.includes('table:session');
    expect([fn.name, text.includes('AssumeRole')]).toEqual([fn.name, takesSessions]);
    const posts = fn.access.includes('channel:ring') || fn.access.includes('listeners:tell');
    expect([fn.name, text.includes('PostToConnection')]).toEqual([fn.name, posts]);
    expect([fn.name, text.includes('GetSecretValue')]).toEqual([fn.name, fn.access.includes('box:open')]);
    expect([fn.name, text.includes('TransactWriteItems')]).toEqual([fn.name, fn.access.length > 0]);
  }
});

test('Node 24 loads it', async () => {
  const node = await ensureNode24({ root: repositoryRoot, cache: cacheDir(), log: () => undefined });
  const largest = [...bundles].sort((a, b) => b.bytes - a.bytes).slice(0, 3);
  for (const { fn, file, bytes } of largest) {
    const ms = await importMs(node, file);
    console.log(
      `${fn.name}: ${(bytes / 1024).toFixed(0)} KB, imported in ${ms.toFixed(0)} ms, budget ${budget.importMs} ms`,
    );
    expect(ms).toBeGreaterThan(0);
  }
});

test('the same sources give the same bytes', async () => {
  const again = path.join(dir, 'again');
  const some = bundles.slice(0, 2);
  const rebuilt = await bundleFunctions({ root: repositoryRoot, outDir: again, functions: some.map(({ fn }) => fn) });
  for (const [i, { file }] of rebuilt.entries()) {
    expect((await readFile(file)).equals(await readFile(some[i]?.file ?? ''))).toBe(true);
  }
});
