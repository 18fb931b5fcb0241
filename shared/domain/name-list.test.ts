import { expect, test } from 'vitest';
import { nameList } from './name-list.ts';

const letters = (n: number) => Array.from({ length: n }, (_, i) => String.fromCharCode(97 + i));

test.each([
  { names: [], text: '' },
  { names: letters(1), text: 'a' },
  { names: letters(3), text: 'a, b, c' },
  { names: letters(4), text: 'a, b, c and 1 more' },
  { names: letters(13), text: 'a, b, c and 10 more' },
])('of $names.length names: $text', ({ names, text }) => {
  expect(nameList(names)).toBe(text);
});
