/** What is said of the processor time of test files. */
import { expect, test } from 'vitest';
import { costLines, readCosts } from './costs.ts';

test('the files that took most come first, behind the sum of all', () => {
  const costs = [
    { file: 'a', own: 1, started: 1 },
    { file: 'b', own: 0, started: 4 },
    { file: 'b', own: 1, started: 5 },
    { file: 'c', own: 4, started: 0 },
  ];
  const lines = costLines(costs, 2, (file) => `/${file}`);
  expect(lines[0]).toContain('3 files of tests on components took 16 s');
  expect(lines.slice(1)).toEqual(['  1 + 9 s  /b', '  4 + 0 s  /c']);
});

test('without a record nothing is said', () => {
  expect(costLines(readCosts('/nonexistent'), 10, String)).toEqual([]);
});
