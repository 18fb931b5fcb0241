import fc from 'fast-check';
import { expect, test } from 'vitest';
import { longestRetryAfterMs, retryAfter, retryDelaysMs, retryJitter } from './schedule.ts';

const random = (a: number, b: number) => ({ bytes: () => new Uint8Array([a, b]) });

test('retries take three days and end', () => {
  const hours = retryDelaysMs.reduce((sum, ms) => sum + ms, 0) / 3_600_000;
  expect(hours).toBeGreaterThan(72);
  expect(hours).toBeLessThan(78);
  expect(retryAfter(retryDelaysMs.length + 1, random(0, 0))).toBeUndefined();
});

test('every pause is the planned one, up to the jitter, or what the receiver asked for', () => {
  const failures = fc.integer({ min: 1, max: retryDelaysMs.length });
  const byte = fc.nat(255);
  fc.assert(
    fc.property(failures, byte, byte, fc.nat(10 ** 9), (n, a, b, asked) => {
      const planned = retryDelaysMs[n - 1] ?? 0;
      const pause = retryAfter(n, random(a, b), asked) ?? 0;
      const heard = Math.min(asked, longestRetryAfterMs);
      expect(pause).toBeGreaterThanOrEqual(Math.max(heard, Math.floor(planned * (1 - retryJitter))));
      expect(pause).toBeLessThanOrEqual(Math.max(heard, Math.ceil(planned * (1 + retryJitter))));
    }),
  );
});
