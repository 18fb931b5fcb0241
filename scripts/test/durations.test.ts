import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { progressLine, readDurations, recordDuration } from './durations.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-durations-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a recorded duration replaces the last one of its suite and no other', () => {
  const file = path.join(folder, 'new', 'durations.json');
  recordDuration(file, 'lint', 5);
  recordDuration(file, 'types', 7.26);
  recordDuration(file, 'lint', 4);
  expect(readDurations(file)).toEqual({ lint: 4, types: 7.3 });
});

test('a record that is absent or damaged is an empty one', () => {
  const file = path.join(folder, 'damaged.json');
  writeFileSync(file, '{"lint":');
  expect(readDurations(file)).toEqual({});
  expect(readDurations(path.join(folder, 'absent.json'))).toEqual({});
});

const last = { lint: 10, real: 400, clusters: 300 };

test('the line tells how far a suite is and what is left of the list', () => {
  const line = progressLine({ suite: 'real', elapsed: 100, after: ['clusters'] }, last);
  expect(line).toBe('-- real: 100 s of about 7 min; about 10 min left in all');
});

test('a suite that takes longer than it did leaves the suites after it, and the line says so', () => {
  const line = progressLine({ suite: 'real', elapsed: 500, after: ['clusters'] }, last);
  expect(line).toBe('-- real: 8 min of about 7 min, later than the last time; about 5 min left in all');
});

test('what no earlier run has measured is said, not guessed', () => {
  expect(progressLine({ suite: 'new', elapsed: 60, after: ['real'] }, last)).toBe(
    '-- new: 60 s, no earlier duration is recorded on this machine',
  );
  expect(progressLine({ suite: 'lint', elapsed: 4, after: ['new', 'real'] }, last)).toBe(
    '-- lint: 4 s of about 10 s; at least 7 min left in all',
  );
});
