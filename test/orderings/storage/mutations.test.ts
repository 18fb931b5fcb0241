import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { casesOf } from '#test/harness/cases.ts';
import { disturbed, endOf } from './disturbed.ts';
import { loadMutant, type Mutant, mutated } from './mutant.ts';
import { mutations } from './mutations.ts';
import type { Turn } from './scripted.ts';

const scripts: readonly (readonly Turn[])[] = [
  [['genoa']],
  [['local'], ['order', 'undo-copy-back']],
  [['local'], ['delete'], ['genoa'], ['delete']],
];
/** Of the same seeds at every run. */
const histories = 800;
const numbered = mutations.map((mutation, i) => ({ ...mutation, name: `mutant-${i}` }));
/** Those that the scripts find; the rest takes histories, and as long as they take. */
const quick = numbered.filter(({ isSubtle }) => !isSubtle);

/** What is found first. */
async function firstFault({ runHistory, runScript }: Mutant): Promise<string> {
  for (const turns of scripts) {
    const { faults } = await runScript(turns, false);
    if (faults[0] !== undefined) return faults[0];
  }
  for (const { what, turns, disturbance, end } of disturbed) {
    const script = await runScript(turns, false, disturbance());
    if (script.faults[0] !== undefined) return script.faults[0];
    if (!isDeepStrictEqual(endOf(script), end)) return `another end of ${what}: ${JSON.stringify(endOf(script))}`;
  }
  for (let seed = 1; seed <= histories; seed++) {
    const { faults } = await runHistory(seed);
    if (faults[0] !== undefined) return `${faults[0]} (history ${seed})`;
  }
  return 'nothing is found';
}

test.each(numbered)('the code that is without $without differs from the product in one place', (mutation) => {
  expect(mutated(mutation)).toContain(mutation.put);
});

describe('histories and scripts of moves find the product', () => {
  test.each(casesOf(numbered, quick))(
    'without $without',
    async ({ name, ...mutation }) => {
      expect(await firstFault(await loadMutant(mutation, name))).not.toBe('nothing is found');
    },
    900_000,
  );
});
