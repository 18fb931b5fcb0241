/** Set-up of tests on components: says how much processor time each file took, to the run that asks for it. */
import { appendFileSync } from 'node:fs';
import { afterAll, expect } from 'vitest';
import { costsVariable, type FileCost } from '#scripts/test/costs.ts';
import { secondsSinceLastAsked } from './processor-seconds.ts';

// Hooks end in reverse order, so what the file itself stops at its end has stopped.
afterAll(() => {
  const to = process.env[costsVariable];
  if (to === undefined) return;
  const cost: FileCost = { file: expect.getState().testPath ?? '', ...secondsSinceLastAsked() };
  appendFileSync(to, `${JSON.stringify(cost)}\n`);
});
