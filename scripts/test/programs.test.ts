import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { background, foreground } from './programs.ts';

const cwd = mkdtempSync(path.join(os.tmpdir(), 'isthmus-programs-'));
afterAll(() => rmSync(cwd, { recursive: true }));

test('a step beside another runs where it should, is nice, and keeps what it says in its file, one program after the other', async () => {
  const logFile = path.join(cwd, 'beside.log');
  const execute = background({ cwd, logFile, niceness: 7 });
  const script = 'console.log(process.cwd(), require("node:os").getPriority(), process.argv[1]); process.exitCode = 3';
  expect(await execute([process.execPath, '-e', script, 'one; two'])).toMatchObject({ code: 3, how: 'code 3' });
  expect(await execute(['sh', '-c', 'echo said >&2'])).toMatchObject({ code: 0 });
  expect(readFileSync(logFile, 'utf8')).toBe(`${cwd} ${Math.min(19, os.getPriority() + 7)} one; two\nsaid\n`);
});

test('a program that is not there fails its step', async () => {
  const logFile = path.join(cwd, 'absent.log');
  expect(await background({ cwd, logFile, niceness: 19 })(['isthmus-is-not-there'])).not.toMatchObject({ code: 0 });
  expect(await foreground({ cwd })(['isthmus-is-not-there'])).toMatchObject({ code: 1 });
});

test('a program that a signal ends says which one, and what it said last, in the foreground and beside another', async () => {
  const dies = ['sh', '-c', 'for i in $(seq 50); do echo line $i >&2; done; kill -9 $$'] as const;
  const logFile = path.join(cwd, 'killed.log');
  for (const execute of [foreground({ cwd }), background({ cwd, logFile, niceness: 1 })]) {
    const { code, how, lastWords } = await execute(dies);
    expect({ code, how }).toEqual({ code: 1, how: 'signal SIGKILL' });
    expect(lastWords.split('\n')).toEqual(Array.from({ length: 30 }, (_, i) => `line ${i + 21}`));
  }
});
