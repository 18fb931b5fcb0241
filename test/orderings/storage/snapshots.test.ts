/** Snapshots and claims that begin as them, with the agents' own controllers and three clusters in memory. */
import { describe, expect, test } from 'vitest';
import { casesOf } from '#test/harness/cases.ts';
import { consumer } from './names.ts';
import { runSnapshot, type SnapshotScript } from './snapshots.ts';

const sources: readonly (Pick<SnapshotScript, 'at' | 'movedTo' | 'end'> & { readonly what: string })[] = [
  { what: 'of a volume in this cluster', at: 'local', end: 'deleted' },
  { what: 'of a volume at a provider', at: 'milan', end: 'deleted' },
  { what: 'of a volume that is moved home afterwards', at: 'genoa', movedTo: 'local', end: 'deleted' },
  { what: 'of a volume that is moved to a provider afterwards', at: 'local', movedTo: 'milan', end: 'deleted' },
  { what: 'that the provider keeps when the peering ends', at: 'milan', end: 'unpeered' },
];
const seeds = casesOf([1, 2, 3, 4, 5, 6, 7, 8], [1]);

describe('a claim that begins as a snapshot has what its source had then, in the cluster of the snapshot, and the snapshot ends once', () => {
  test.each(sources)('$what, also when agents die before and after every write', async ({ what: _, ...of }) => {
    const cluster = of.at === 'local' ? consumer : of.at;
    for (const seed of seeds)
      for (const dies of [false, true]) {
        const end = await runSnapshot({ ...of, seed, dies });
        const kept = of.end === 'unpeered' ? 1 : 0;
        expect(end, `seed ${seed}`).toMatchObject({ faults: [], cluster, missing: 0, later: 0, data: kept, kept });
        expect(Math.min(end.had, end.written)).toBeGreaterThan(5);
        expect(end.rescheduled).toBeGreaterThan(1);
        if (dies) expect(end.deaths).toBeGreaterThan(10);
      }
  });
});
