import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { casesOf } from '#test/harness/cases.ts';
import { type Disturbed, disturbed, endOf } from './disturbed.ts';
import { loadMutant, type Mutant, mutated } from './mutant.ts';
import { type Mutation, mutations } from './mutations.ts';
import type { Turn } from './scripted.ts';

const scripts: readonly (readonly Turn[])[] = [
  [['genoa']],
  [['local'], ['order', 'undo-copy-back']],
  [['local'], ['delete'], ['genoa'], ['delete']],
];
/** Of the same seeds at every run. */
const histories = 800;
const numbered = mutations.map((mutation, i) => ({ ...mutation, name: `mutant-${i}` }));
/** Every fourth of those that the scripts find; the rest takes histories, and as long as they take. */
const quick = numbered.filter(({ isSubtle }) => !isSubtle).filter((_, i) => i % 4 === 0);

/** What is found first, by what found it last and then by everything. */
async function firstFault({ runHistory, runScript }: Mutant, { foundBy, seed }: Mutation): Promise<string> {
  const byDisturbed = async ({ what, turns, disturbance, end }: Disturbed): Promise<string | undefined> => {
    const script = await runScript(turns, false, disturbance());
    if (script.faults[0] !== undefined) return script.faults[0];
    const isOther = !isDeepStrictEqual(endOf(script), end);
    return isOther ? `another end of ${what}: ${JSON.stringify(endOf(script))}` : undefined;
  };
  const likely = disturbed.find(({ what }) => what === foundBy);
  const known = likely ? await byDisturbed(likely) : seed && (await runHistory(seed)).faults[0];
  if (known) return known;
  for (const turns of scripts) {
    const { faults } = await runScript(turns, false);
    if (faults[0] !== undefined) return faults[0];
  }
  for (const one of disturbed) {
    const fault = await byDisturbed(one);
    if (fault !== undefined) return fault;
  }
  for (let seed = 1; seed <= histories; seed++) {
    const { faults } = await runHistory(seed);
    if (faults[0] !== undefined) return `${faults[0]} (history ${seed})`;
  }
  return 'nothing is found';
}

test.each(numbered)('the code that is without $without differs from the product in one place', (mutation) => {
  for (const edit of [mutation, ...(mutation.also ? [mutation.also] : [])]) expect(mutated(edit)).toContain(edit.put);
});

test('what finds a mistake is there', () => {
  const known = disturbed.map(({ what }) => what);
  expect(known).toEqual(expect.arrayContaining(mutations.flatMap(({ foundBy }) => foundBy ?? [])));
});

describe('histories and scripts of moves find the product', () => {
  test.each(casesOf(numbered, quick))(
    'without $without',
    async ({ name, ...mutation }) => {
      expect(await firstFault(await loadMutant(mutation, name), mutation)).not.toBe('nothing is found');
    },
    900_000,
  );
});
