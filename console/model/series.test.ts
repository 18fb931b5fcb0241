import { describe, expect, test } from 'vitest';
import { chartsOf, type Line, pathOf, rateText, rowsOf, together, topOf, wordsOf } from './series.ts';

const at = (minute: number): string => new Date(minute * 60_000).toISOString();
const names = { sent: 'rome to milan', received: 'milan to rome' };

test('a chart has the lines of which anything was measured, and says in words how they run', () => {
  const link = [
    { at: at(0), rttMs: 1.5, received: 2_000, sent: 1_000 },
    { at: at(1), rttMs: 12.34, received: 4_000_000 },
  ];
  const charts = chartsOf(link, [{ at: at(0), cpuGranted: 4, cpuUsed: 0.5 }], names);
  expect(charts.map(wordsOf)).toEqual([
    'Throughput: rome to milan from 1.0 kB/s to 1.0 kB/s, last 1.0 kB/s; milan to rome from 2.0 kB/s to 4.0 MB/s, last 4.0 MB/s',
    'Round trip: round trip from 1.5 ms to 12.3 ms, last 12.3 ms',
    'CPU: granted from 4 cores to 4 cores, last 4 cores; in use from 0.5 cores to 0.5 cores, last 0.5 cores',
  ]);
  expect(chartsOf([], [], names)).toEqual([]);
  expect(charts.map(topOf)).toEqual([4_000_000, 12.34, 4]);
  expect(rowsOf(charts[0]!)).toEqual([
    [60_000, undefined, 4_000_000],
    [0, 1_000, 2_000],
  ]);
});

test.each([
  [0, '0 B/s'],
  [999, '999 B/s'],
  [1_000, '1.0 kB/s'],
  [12_345, '12 kB/s'],
  [9_900_000, '9.9 MB/s'],
  [5e15, '5000000 GB/s'],
])('%s bytes per second are written %s', (rate, text) => {
  expect(rateText(rate)).toBe(text);
});

describe('a line', () => {
  const span = { from: 0, to: 600_000, stepMs: 60_000 };
  const draw = (...values: Line['values']) => pathOf({ name: '', values }, span, 10, { width: 100, height: 50 });

  test('goes on from step to step, and is interrupted where nothing was measured', () => {
    expect(draw([0, 0], [60_000, 5], [240_000, 10], [300_000, 10])).toBe('M0.0 50.0L10.0 25.0M40.0 0.0L50.0 0.0');
  });

  test('of one measurement alone is a dot', () => {
    expect(draw([300_000, 5])).toBe('M50.0 25.0h0.1');
  });
});

test('several links together pass the sum, with the slowest round trip and the highest loss', () => {
  const rome = [{ at: at(0), rttMs: 3, packetLoss: 0, received: 1, sent: 2 }];
  const turin = [
    { at: at(1), rttMs: 9 },
    { at: at(0), rttMs: 1, packetLoss: 5, received: 10, cpuUsed: 1 },
  ];
  expect(together([rome, turin])).toEqual([
    { at: at(0), rttMs: 3, packetLoss: 5, received: 11, sent: 2, cpuUsed: 1 },
    { at: at(1), rttMs: 9 },
  ]);
});
