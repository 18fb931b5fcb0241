import { expect, test } from 'vitest';
import { byDuration, inGroups } from './longest-first.ts';

test('the longest file begins first, and one that never ran before all others', () => {
  const last: Readonly<Record<string, number>> = { short: 1, long: 300, middle: 20 };
  expect(byDuration(['short', 'unknown', 'middle', 'long'], (name) => last[name])).toEqual([
    'unknown',
    'long',
    'middle',
    'short',
  ]);
});

test('files of equal length keep their order', () => {
  expect(byDuration(['b', 'a', 'c'], () => 5)).toEqual(['b', 'a', 'c']);
  expect(byDuration(['b', 'a', 'c'], () => undefined)).toEqual(['b', 'a', 'c']);
});

test('files that share a process are not parted by a file of another project', () => {
  const projectOf: Readonly<Record<string, string>> = {
    mutations: 'thorough',
    lies: 'thorough',
    cli: 'fast',
    dns: 'fast',
  };
  const files = ['mutations', 'cli', 'alone', 'lies', 'dns'];
  expect(inGroups(files, (file) => projectOf[file])).toEqual(['mutations', 'lies', 'cli', 'dns', 'alone']);
});
