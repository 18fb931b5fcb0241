import { expect, test } from 'vitest';
import { byDuration } from './longest-first.ts';

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
