/** What is said of the processor time of test files. */
import { expect, test } from 'vitest';
import { costLines, readCosts, secondsOf } from './costs.ts';

test('a process has its own time and that of programs that have ended, also with brackets in its name', () => {
  const rest = Array.from({ length: 30 }, (_, i) => i).join(' ');
  expect(secondsOf(`12 (a ) name) S ${rest}`)).toEqual({ own: (10 + 11) / 100, started: (12 + 13) / 100 });
});

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
