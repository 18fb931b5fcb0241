import { expect, test } from 'vitest';
import { isDefect, runtimeWarnings } from './runtime-warnings.ts';

const nextWarning = (): Promise<Error> => new Promise((resolve) => process.once('warning', resolve));

test('the eleventh listener of a signal is a defect', async () => {
  // Not by the listeners themselves: the set-up of this very file would fail the test.
  const warned = nextWarning();
  process.emitWarning('a listener too many', 'DeprecationWarning');
  expect(isDefect(await warned)).toBe(false);
  expect(isDefect(Object.assign(new Error('eleven'), { name: 'MaxListenersExceededWarning' }))).toBe(true);
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
  expect(runtimeWarnings('')).toEqual([]);
});
