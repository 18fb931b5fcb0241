import { expect, test } from 'vitest';
import { isDefect, runtimeWarnings } from './runtime-warnings.ts';

test('a listener too many is a defect; what a library announces is not', () => {
  expect(isDefect({ name: 'MaxListenersExceededWarning' })).toBe(true);
  expect(isDefect({ name: 'DeprecationWarning' })).toBe(false);
});

test('a printed warning is found between lines of a log, with its place', () => {
  const printed = [
    '{"level":"info","msg":"process started"}',
    '(node:77) MaxListenersExceededWarning: Possible EventTarget memory leak detected. 11 abort listeners added to [AbortSignal].',
    '    at [kNewListener] (node:internal/event_target:571:17)',
    '    at file:///x/fabric.mjs:1:2',
    '{"level":"info","msg":"on"}',
    '(node:77) Warning: something else',
  ];
  expect(runtimeWarnings(printed.join('\n'))).toEqual([printed.slice(1, 4).join('\n').replace('(node:77) ', '')]);
  const inContainer = printed.map((line) => `2026-11-22T14:40:00.123456789Z stderr F ${line}`);
  const [found, ...more] = runtimeWarnings(inContainer.join('\n'));
  expect([found?.split('\n').length, more]).toEqual([3, []]);
  expect(runtimeWarnings('')).toEqual([]);
});
