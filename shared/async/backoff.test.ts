import { expect, test } from 'vitest';
import { backoffMs } from './backoff.ts';

const limits = { baseMs: 500, maxMs: 30_000 };

test('a delay doubles from the base to the most there may be, and stays there', () => {
  const delays = [1, 2, 3, 6, 7, 8, 5_000].map((failures) => backoffMs(failures, limits));
  expect(delays).toEqual([500, 1_000, 2_000, 16_000, 30_000, 30_000, 30_000]);
});

test('chance takes half of it at most', () => {
  const least = { ...limits, random: () => 0 };
  expect([1, 2, 100].map((failures) => backoffMs(failures, least))).toEqual([250, 500, 15_000]);
  const middle = { ...limits, random: () => 0.5 };
  expect([1, 2, 100].map((failures) => backoffMs(failures, middle))).toEqual([375, 750, 22_500]);
});

test('chance takes all of it from those that have collided', () => {
  const failures = [1, 2, 100];
  expect(failures.map((n) => backoffMs(n, { ...limits, leastPart: 0, random: () => 0 }))).toEqual([0, 0, 0]);
  expect(failures.map((n) => backoffMs(n, { ...limits, leastPart: 0, random: () => 0.5 }))).toEqual([250, 500, 15_000]);
});
