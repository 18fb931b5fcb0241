import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Sample } from '#shared/schema/protocol/samples.ts';
import { gathered, hourMs, hourOf, pointsOf, rowOf, withRows } from './points.ts';

const hour = Date.UTC(2026, 0, 1, 12);
const count = fc.option(fc.nat(), { nil: undefined });
const sample: fc.Arbitrary<Sample> = fc
  .record({
    minute: fc.integer({ min: 0, max: 59 }),
    rttMicros: count,
    packetLoss: fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined }),
    received: count,
    sent: count,
    cpuGranted: count,
    cpuUsed: count,
    memoryGranted: count,
    memoryUsed: count,
  })
  .map(({ minute, ...rest }) => {
    const known = Object.entries(rest).filter(([, value]) => value !== undefined);
    return { at: hour / 1_000 + minute * 60, ...Object.fromEntries(known) };
  });

test('what is kept of a minute is what was reported, and a report that comes again changes nothing', () => {
  fc.assert(
    fc.property(fc.array(sample), (samples) => {
      const rows = withRows([], samples.map(rowOf));
      const last = [...new Map(samples.map((one) => [one.at, one])).values()].sort((a, b) => a.at - b.at);
      expect(pointsOf(hour, { rows })).toEqual(last.map(({ at, ...rest }) => ({ at: at * 1_000, ...rest })));
      expect(withRows(rows, samples.map(rowOf))).toEqual(rows);
      expect(rows.length).toBeLessThanOrEqual(60);
    }),
  );
});

test('a quarter of an hour has the mean of its minutes and their highest loss', () => {
  const minutes = [
    { at: hour, rttMicros: 1_000, packetLoss: 0, received: 10 },
    { at: hour + 60_000, rttMicros: 3_000, packetLoss: 7 },
    { at: hour + 900_000, sent: 5 },
  ];
  expect(gathered(minutes, 900_000)).toEqual([
    { at: hour, rttMicros: 2_000, packetLoss: 7, received: 10 },
    { at: hour + 900_000, sent: 5 },
  ]);
});

test('an hour holds its own minutes', () => {
  expect([hourOf(hour), hourOf(hour + hourMs - 1), hourOf(hour + hourMs)]).toEqual([hour, hour, hour + hourMs]);
});
