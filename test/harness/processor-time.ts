/** Set-up of test files that have a process each: says how much processor time the file took, to the run that asks for it. */
import { appendFileSync } from 'node:fs';
import { afterAll, expect } from 'vitest';
import { costsVariable, type FileCost } from '#scripts/test/costs.ts';
import { processorSeconds } from './processor-seconds.ts';

// Hooks end in reverse order, so what the file itself stops at its end has stopped.
afterAll(() => {
  const to = process.env[costsVariable];
  if (to === undefined) return;
  const cost: FileCost = { file: expect.getState().testPath ?? '', ...processorSeconds(process.pid) };
  appendFileSync(to, `${JSON.stringify(cost)}\n`);
});
