import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runOrdering } from './orderings.ts';

test('no pod is stuck in any order in which its namespace, offloading, node, settings and both agents come, go and hear of each other', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 31 }), async (seed) => {
      const { settledMs } = await runOrdering(seed);
      expect(settledMs).toBeLessThan(150_000);
    }),
    // `npm run orderings` and `npm run test:long` take 10,000.
    { numRuns: 40 },
  );
}, 120_000);
