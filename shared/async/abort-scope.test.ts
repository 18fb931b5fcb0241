import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { abortScope, abortsWith } from './abort-scope.ts';

const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

test.each(['parent', 'until'] as const)('what is to end with either ends with the %s, and says why', (first) => {
  const [parent, until] = [new AbortController(), new AbortController()];
  const either = abortsWith(parent.signal, until.signal);
  expect(either.aborted).toBe(false);
  (first === 'parent' ? parent : until).abort('enough');
  expect(either.aborted).toBe(true);
  expect(either.reason).toBe('enough');
});

test('of what has ended, a parent that lives on keeps nothing', () => {
  const parent = new AbortController();
  for (let round = 0; round < 100; round++) {
    const until = new AbortController();
    abortsWith(parent.signal, until.signal);
    until.abort();
    abortScope(parent.signal).unlink();
  }
  expect(listeners(parent.signal)).toBe(0);
});

test.each(['parent', 'until'] as const)('with a %s that has aborted already, it begins aborted', (which) => {
  const [parent, until] = [new AbortController(), new AbortController()];
  (which === 'parent' ? parent : until).abort('before');
  const either = abortsWith(parent.signal, until.signal);
  expect(either.reason).toBe('before');
  expect(listeners(parent.signal)).toBe(0);
});
