import { describe, expect, type RunnerTestCase, test } from 'vitest';
import { inOrder, missingBefore, once } from './in-order.ts';

/** Suites as vitest's runner has them. */
const one = (name: string, mode: 'run' | 'skip') => ({ type: 'test', name, mode }) as unknown as RunnerTestCase;
const suite = (...tasks: unknown[]) => ({ type: 'suite', tasks }) as never;

test('a test whose forerunner was left out says which; one with all of them says nothing', () => {
  const self = one('third', 'run');
  expect(missingBefore(self, suite(suite(one('first', 'skip')), one('second', 'run'), self))).toBe(
    'this test continues "first", which was left out: run the whole file, without -t',
  );
  expect(missingBefore(self, suite(one('first', 'run'), self, one('later', 'skip')))).toBeUndefined();
});

describe('in a real scenario', () => {
  inOrder('describe');
  const steps: string[] = [];
  test('the first test runs', () => void steps.push('first'));
  test('and so does the one that continues it', () => {
    expect(steps).toEqual(['first']);
  });
});

test('what several need is made once, and its failure is told to each', async () => {
  let calls = 0;
  const make = once(async () => {
    calls += 1;
    throw new Error('no');
  });
  for (let i = 0; i < 2; i++) await expect(make()).rejects.toThrow('no');
  expect(calls).toBe(1);
});
