/** How processor time is read. */
import { expect, test } from 'vitest';
import { secondsOf } from './processor-seconds.ts';

test('a process has its own time and that of programs that have ended, also with brackets in its name', () => {
  const rest = Array.from({ length: 30 }, (_, i) => i).join(' ');
  expect(secondsOf(`12 (a ) name) S ${rest}`)).toEqual({ own: (10 + 11) / 100, started: (12 + 13) / 100 });
});
