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
  expect(await execute([process.execPath, '-e', script, 'one; two'])).toBe(3);
  expect(await execute(['sh', '-c', 'echo said >&2'])).toBe(0);
  expect(readFileSync(logFile, 'utf8')).toBe(`${cwd} ${Math.min(19, os.getPriority() + 7)} one; two\nsaid\n`);
});

test('a program that is not there fails its step', async () => {
  const logFile = path.join(cwd, 'absent.log');
  expect(await background({ cwd, logFile, niceness: 19 })(['isthmus-is-not-there'])).not.toBe(0);
  expect(await foreground({ cwd })(['isthmus-is-not-there'])).toBe(1);
});
