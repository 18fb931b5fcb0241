import { afterEach, expect, test } from 'vitest';
import { guardStackTraces } from './stack-traces.ts';

const before = Error.prepareStackTrace;
afterEach(() => {
  Error.prepareStackTrace = before;
});

/** Node asks for a trace when `stack` is read first. */
const traceOf = (message: string): string => String(new Error(message).stack);

test('the stack of an error can be read where the mapper of stack traces throws, and names the lines', () => {
  Error.prepareStackTrace = () => {
    throw new TypeError('code.charCodeAt is not a function');
  };
  guardStackTraces();
  const trace = traceOf('cut off');
  expect(trace).toContain('Error: cut off\n    at ');
  expect(trace).toContain('traceOf');
});

test('a stack trace that can be mapped is mapped', () => {
  Error.prepareStackTrace = (error) => `mapped: ${error.message}`;
  guardStackTraces();
  expect(traceOf('cut off')).toBe('mapped: cut off');
});

test('without a mapper nothing is guarded', () => {
  Reflect.deleteProperty(Error, 'prepareStackTrace');
  guardStackTraces();
  expect(Error.prepareStackTrace).toBeUndefined();
});
