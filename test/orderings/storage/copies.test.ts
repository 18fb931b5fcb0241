/** Claims that begin as copies of others, with the agents' own controllers and three clusters in memory. */
import { describe, expect, test } from 'vitest';
import { casesOf } from '#test/harness/cases.ts';
import { type CopyScript, runCopy } from './copies.ts';
import { consumer } from './names.ts';

const sources: readonly (Pick<CopyScript, 'at' | 'movedTo'> & { readonly what: string })[] = [
  { what: 'in this cluster', at: 'local' },
  { what: 'at a provider', at: 'milan' },
  { what: 'that was moved to another provider', at: 'milan', movedTo: 'genoa' },
  { what: 'that was moved home', at: 'genoa', movedTo: 'local' },
  { what: 'that was moved to a provider', at: 'local', movedTo: 'milan' },
];
const seeds = casesOf([1, 2, 3, 4, 5, 6, 7, 8], [1]);

describe('a copy has all that its source had, in the cluster of that, however often the scheduler sends it elsewhere, and moves like any other volume', () => {
  test.each(sources)(
    'of a source $what, also when agents die before and after every write',
    async ({ what: _, ...of }) => {
      const at = of.movedTo ?? of.at;
      const cluster = at === 'local' ? consumer : at;
      for (const seed of seeds)
        for (const dies of [false, true]) {
          const end = await runCopy({ ...of, seed, dies });
          expect(end, `seed ${seed}`).toMatchObject({ faults: [], clusters: [cluster, cluster], missing: 0 });
          expect(end.had).toBeGreaterThan(5);
          expect(end.rescheduled).toBeGreaterThan(1);
          if (dies) expect(end.deaths).toBeGreaterThan(10);
        }
    },
  );
});
