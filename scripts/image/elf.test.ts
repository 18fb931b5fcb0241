import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { isElf, linkageOf, withoutSymbols } from './elf.ts';

const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-elf-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

// The program that runs this test is an ELF file on Linux, and nowhere else.
describe.skipIf(process.platform !== 'linux')('a program', () => {
  const program = readFileSync('/proc/self/exe');

  test('names its loader and its libraries', () => {
    const { interpreter, needed } = linkageOf(program);
    expect(interpreter).toMatch(/^\/lib.*\/ld-[^/]+$/);
    expect(needed).toContain('libc.so.6');
  });

  test('runs without its symbols, and is no longer', () => {
    const file = path.join(scratch, 'node');
    const stripped = withoutSymbols(program);
    expect(stripped.length).toBeLessThanOrEqual(program.length);
    writeFileSync(file, stripped, { mode: 0o755 });
    expect(execFileSync(file, ['-p', '6 * 7'], { encoding: 'utf8' })).toBe('42\n');
    expect(linkageOf(stripped)).toEqual(linkageOf(program));
    expect(withoutSymbols(stripped).equals(stripped)).toBe(true);
  });
});

test('a text is no program', () => {
  expect(isElf(Buffer.from('#!/bin/sh'))).toBe(false);
  expect(() => linkageOf(Buffer.alloc(64))).toThrow('no 64-bit little-endian ELF file');
});
