/** What the rounds rest on: that all ways have their turn, and that a difference is seen and told. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { enders, makers } from './peering-methods.ts';
import { pairings } from './rounds.ts';
import { type Traces, traceDifferences } from './traces.ts';

test('any four rounds in a row have all four ways to make a peering, and long runs end each in all its ways', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000_000 }), (seed) => {
      const all = pairings({ rounds: 24, seed });
      for (let at = 0; at + 4 <= all.length; at++)
        expect(new Set(all.slice(at, at + 4).map(({ make }) => make.by)).size).toBe(4);
      const drawn = new Set(all.map(({ make, end }) => `${make.by}, ${end.by}`));
      const possible = Object.entries(enders).flatMap(([maker, ways]) =>
        ways.map(({ by }) => `${makers[maker as keyof typeof makers].by}, ${by}`),
      );
      expect([...drawn].sort()).toEqual(possible.sort());
    }),
  );
});

test('the same seed draws the same rounds', () => {
  const drawn = (seed: number) => pairings({ rounds: 100, seed }).map(({ make, end }) => `${make.by}, ${end.by}`);
  expect(drawn(7)).toEqual(drawn(7));
  expect(drawn(7)).not.toEqual(drawn(8));
});

test.each<{ readonly what: string; readonly after: Traces; readonly told: readonly string[] }>([
  { what: 'nothing', after: { nft: 'a\nb\nb', links: 'x' }, told: [] },
  { what: 'a thing that went', after: { nft: 'a\nb\nb' }, told: ['- links'] },
  { what: 'a thing that came', after: { nft: 'a\nb\nb', links: 'x', more: '' }, told: ['+ more'] },
  { what: 'a line that changed', after: { nft: 'a\nb\nc', links: 'x' }, told: ['- nft: b', '+ nft: c'] },
  { what: 'a line that is there once less', after: { nft: 'a\nb', links: 'x' }, told: ['- nft: b'] },
  {
    what: 'another order',
    after: { nft: 'b\na\nb', links: 'x' },
    told: ['~ nft: the same lines in another order, from b on'],
  },
])('$what is told', ({ after, told: reported }) => {
  expect(traceDifferences({ nft: 'a\nb\nb', links: 'x' }, after)).toEqual(reported);
});
