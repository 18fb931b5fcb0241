/** Set-up of test files that have a process each: says how much processor time the file took, to the run that asks for it. */
import { appendFileSync, readFileSync } from 'node:fs';
import { afterAll, expect } from 'vitest';
import { costsVariable, type FileCost, secondsOf } from '#scripts/test/costs.ts';

// Hooks end in reverse order, so what the file itself stops at its end has stopped.
afterAll(() => {
  const to = process.env[costsVariable];
  if (to === undefined) return;
  const cost: FileCost = {
    file: expect.getState().testPath ?? '',
    ...secondsOf(readFileSync('/proc/self/stat', 'utf8')),
  };
  appendFileSync(to, `${JSON.stringify(cost)}\n`);
});
