import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test } from 'vitest';

const repository = path.resolve(import.meta.dirname, '..');
let root = '';
const children: ChildProcess[] = [];
beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), 'isthmus-run-'));
  mkdirSync(path.join(root, 'scripts'));
  for (const file of ['package.json', 'package-lock.json', 'tsconfig.base.json', 'scripts/run.mjs'])
    copyFileSync(path.join(repository, file), path.join(root, file));
  symlinkSync(path.join(repository, 'node_modules'), path.join(root, 'node_modules'));
  writeFileSync(path.join(root, 'late.ts'), "export const word: string = 'late';\n");
  write('first');
});
afterEach(async () => {
  for (const child of children.splice(0))
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
  rmSync(root, { recursive: true });
});

/** Says a word at its start, and one of a part of its own once its input has ended. */
const write = (word: string): void =>
  writeFileSync(
    path.join(root, 'entry.ts'),
    `console.log('${word}');
for await (const _ of process.stdin);
console.log((await import('./late.ts')).word);
`,
  );

async function start() {
  const child = spawn(process.execPath, ['scripts/run.mjs', 'entry.ts'], {
    cwd: root,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.push(child);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const said = async (): Promise<string | undefined> => (await lines.next()).value;
  return {
    first: await said(),
    async end() {
      child.stdin.end();
      return await said();
    },
  };
}

const folder = (): string => path.join(root, '.build', 'run');
const folders = (): readonly string[] => readdirSync(folder()).filter((name) => /^entry-ts-[0-9a-f]{24}$/.test(name));
const longAgo = new Date(Date.now() - 2 * 3_600_000);
const age = (): void => {
  for (const name of folders()) utimesSync(path.join(folder(), name), longAgo, longAgo);
};

test('a program that runs for hours still loads its parts after others were bundled from newer files', async () => {
  const old = await start();
  age();
  write('second');
  const next = await start();
  expect([old.first, next.first]).toEqual(['first', 'second']);
  expect(await old.end()).toBe('late');
  expect(await next.end()).toBe('late');
});

test('a bundle that no program uses is removed after an hour, and what a killed one left half at once', async () => {
  expect(await (await start()).end()).toBe('late');
  await Promise.all(children.map(async (child) => child.exitCode ?? (await once(child, 'exit'))));
  age();
  // Above the highest number that Linux gives a process.
  mkdirSync(path.join(folder(), 'entry-ts.4194305'));
  write('second');
  expect(await (await start()).end()).toBe('late');
  expect(folders()).toHaveLength(1);
  expect(readdirSync(folder())).not.toContain('entry-ts.4194305');
});
