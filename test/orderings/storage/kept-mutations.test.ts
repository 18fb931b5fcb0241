/** Mistakes planted one at a time in the rules of kept volumes, each of which a history finds. */
import { expect, test } from 'vitest';
import { casesOf } from '#test/harness/cases.ts';
import { type KeptMutation, keptMutations } from './kept-mutations.ts';
import { loadMutant, type Mutant, mutated } from './mutant.ts';

/** Of the same seeds at every run. */
const histories = 800;
const kinds = [
  [false, false],
  [true, false],
  [false, true],
] as const;

async function firstFault({ runAdoptions, runLateRetain }: Mutant, known?: KeptMutation['history']): Promise<string> {
  if (known === undefined) return (await runLateRetain(1))[0] ?? 'nothing is found';
  const [likely] = (await runAdoptions(known.seed, known.isRestless, known.isCrowded)).faults;
  if (likely !== undefined) return likely;
  for (let seed = 1; seed <= histories; seed++)
    for (const [isRestless, isCrowded] of kinds) {
      const { faults } = await runAdoptions(seed, isRestless, isCrowded);
      if (faults[0] !== undefined) return `${faults[0]} (history ${seed}, ${isRestless ? 'restless' : 'calm'})`;
    }
  return 'nothing is found';
}

const numbered = keptMutations.map((mutation, i) => ({ ...mutation, name: `kept-mutant-${i}` }));
/** Every third of those that the first history finds, or no history. */
const quick = numbered.filter(({ history }) => (history?.seed ?? 1) === 1).filter((_, i) => i % 3 === 0);

test.each(numbered)('the code that is without $without differs from the product in one place', (mutation) => {
  expect(mutated(mutation)).toContain(mutation.put);
});

test.each(casesOf(numbered, quick))(
  'histories of kept volumes find the product without $without',
  async ({ name, history, ...mutation }) => {
    expect(await firstFault(await loadMutant(mutation, name), history)).not.toBe('nothing is found');
  },
  900_000,
);
