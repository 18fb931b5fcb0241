import path from 'node:path';
import { expect, test } from 'vitest';
import { closingLines, nothing, resultOf, resultOfTwo, sum } from './closing.ts';
import type { Outcome } from './vitest-report.ts';

const relative = (file: string): string => path.relative('/root', file);
const [a, b] = ['/root/a.test.ts', '/root/b.test.ts'];
const outcome = (passed: Record<string, number>, ...failures: Outcome['failures']): Outcome => ({
  passed: new Map(Object.entries(passed)),
  failures,
});
const late = { file: a, title: 'arrives', message: 'not within 5 s' };
const wrong = { file: b, title: 'is right', message: 'expected 1, got 2' };

test('a file that failed beside others and passed alone is flaky; one that failed twice is not', () => {
  const first = outcome({ [a]: 1, [b]: 2 }, late, wrong);
  const counted = outcome({ [a]: 2, [b]: 2 }, wrong);
  const result = resultOfTwo(first, counted, relative);
  expect(result).toMatchObject({ passed: 4, failed: 1 });
  expect(result.flaky.map(({ file }) => file)).toEqual(['a.test.ts']);
  expect(result.told).toEqual(['b.test.ts > is right\nexpected 1, got 2']);
});

test('the last line counts and says nothing else, and the flaky files are named right above it', () => {
  const result = resultOfTwo(outcome({ [a]: 1 }, late), outcome({ [a]: 2 }), relative);
  const lines = closingLines(sum(result, resultOf(outcome({ [b]: 3 }), relative)), 61.2);
  expect(lines.at(-1)).toBe('5 passed, 0 failed');
  expect(lines.at(-3)).toBe('1 flaky (failed beside others, passed alone): a.test.ts');
  expect(lines.at(-2)).toContain('npm run test:flaky -- a.test.ts');
  expect(lines.join('\n')).toContain('a.test.ts > arrives\nnot within 5 s');
});

test('a run without a failure ends with its time and its count', () => {
  expect(closingLines(sum(nothing, resultOf(outcome({ [a]: 3 }), relative)), 12)).toEqual([
    '',
    'all of it took 12 s',
    '3 passed, 0 failed',
  ]);
});

test('what failed is told before the count', () => {
  const lines = closingLines(resultOf(outcome({ [b]: 1 }, wrong), relative), 1);
  expect(lines.slice(0, 4)).toEqual(['', 'what failed:', '', 'b.test.ts > is right\nexpected 1, got 2']);
  expect(lines.at(-1)).toBe('1 passed, 1 failed');
});

test('a test runner that ended without a report and passed the second time counts with its second run, and is named with what it said', () => {
  const died = outcome({}, { file: '/root', message: 'the test runner ended with signal SIGABRT' });
  const lines = closingLines(resultOfTwo(died, outcome({ [a]: 2, [b]: 1 }), relative), 1);
  expect(lines.at(-1)).toBe('3 passed, 0 failed');
  expect(lines.at(-2)).toBe('1 flaky (failed beside others, passed alone): the test runner');
  expect(lines.join('\n')).toContain('signal SIGABRT');
});
