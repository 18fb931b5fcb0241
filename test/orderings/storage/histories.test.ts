import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { drawn } from '#test/harness/cases.ts';
import { runHistory } from './histories.ts';

test('in no history of create, write, resize, move, undo, cut, unpeer and adopt is a line lost, a volume mounted twice or data left without a record', async () => {
  const phases = new Set<string>();
  await fc.assert(
    // With bias many seeds come twice, and one history in twenty enters Keeping.
    fc.asyncProperty(fc.noBias(fc.integer({ min: 1, max: 2 ** 31 })), async (seed) => {
      const { faults, steps, phases: entered } = await runHistory(seed);
      expect(faults, `seed ${seed}: ${steps.join(' > ')}`).toEqual([]);
      for (const phase of entered.keys()) phases.add(phase);
    }),
    drawn(5_000, { numRuns: 60, seed: 1 }),
  );
  // Histories that never came this far would prove nothing.
  expect([...phases]).toEqual(
    expect.arrayContaining(['Undoable', 'Confirmed', 'Undone', 'Aborted', 'Keeping', 'Refused', 'Switching']),
  );
}, 1_800_000);
