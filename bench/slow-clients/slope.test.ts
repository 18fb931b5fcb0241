import fc from 'fast-check';
import { expect, test } from 'vitest';
import { slopePerMinute } from './slope.ts';

test('is that of a line through the points, whichever of them there are', () => {
  const steep = fc.integer({ min: -1_000, max: 1_000 });
  fc.assert(
    fc.property(steep, steep, fc.uniqueArray(fc.nat({ max: 600 }), { minLength: 2 }), (slope, from, seconds) => {
      const points = seconds.map((second) => [second * 1_000, from + (slope * second) / 60] as const);
      expect(slopePerMinute(points)).toBeCloseTo(slope, 5);
    }),
  );
});

test('is none for values that sway around one, and for a single moment', () => {
  expect(slopePerMinute([0, 1, 2, 3, 4, 5, 6].map((i) => [i * 1_000, i % 2 === 0 ? 10 : 12]))).toBeCloseTo(0, 5);
  expect(slopePerMinute([[5, 7]])).toBe(0);
  expect(slopePerMinute([])).toBe(0);
});
