import { expect, test } from 'vitest';
import { byDuration, interleaved } from './longest-first.ts';

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

test('files with clusters of their own are followed by one without, in their order', () => {
  const isUpper = (name: string) => name === name.toUpperCase();
  expect(interleaved(['A', 'B', 'a', 'C', 'b', 'c', 'd'], isUpper)).toEqual(['A', 'a', 'B', 'b', 'C', 'c', 'd']);
  expect(interleaved(['a', 'A', 'B', 'C'], isUpper)).toEqual(['A', 'a', 'B', 'C']);
  expect(interleaved(['a', 'b'], isUpper)).toEqual(['a', 'b']);
});
