import { describe, expect, test } from 'vitest';
import { loadMutant } from './mutant.ts';
import { mutations } from './mutations.ts';
import type { Turn } from './scripted.ts';

const scripts: readonly (readonly Turn[])[] = [
  [['genoa']],
  [['local'], ['order', 'undo-copy-back']],
  [['local'], ['delete'], ['genoa'], ['delete']],
];
/** Of the same seeds at every run: far more than the latest found needs. */
const histories = 600;

/** What is found first; undefined: nothing. */
async function firstFault({
  runHistory,
  runScript,
}: Awaited<ReturnType<typeof loadMutant>>): Promise<string | undefined> {
  for (const turns of scripts) {
    const { faults } = await runScript(turns, false);
    if (faults[0] !== undefined) return faults[0];
  }
  for (let seed = 1; seed <= histories; seed++) {
    const { faults } = await runHistory(seed);
    if (faults[0] !== undefined) return `${faults[0]} (history ${seed})`;
  }
  return undefined;
}

describe('histories and scripts of moves find the product', () => {
  test.each(mutations.map((mutation, i) => ({ ...mutation, name: `mutant-${i}` })))(
    'without $without',
    async ({ name, ...mutation }) => {
      expect(await firstFault(await loadMutant(mutation, name))).toBeDefined();
    },
    600_000,
  );
});
