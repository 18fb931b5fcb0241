import { expect, test } from 'vitest';
import { parseSelector, selectorPattern, selects } from './label-selector.ts';

test.each([
  { selector: 'tier=gold', holds: true },
  { selector: 'tier', holds: true },
  { selector: 'tier=gold,example.com/zone', holds: true },
  { selector: 'example.com/zone=', holds: true },
  { selector: 'tier=', holds: false },
  { selector: 'tier=silver', holds: false },
  { selector: 'tier=gold,other', holds: false },
  { selector: 'constructor', holds: false },
])('$selector holds of a gold cluster: $holds', ({ selector, holds }) => {
  expect(selector).toMatch(selectorPattern);
  expect(selects(parseSelector(selector), { tier: 'gold', 'example.com/zone': '' })).toBe(holds);
});

test.each(['', '=', ',', 'tier=a b', 'tier==gold', 'tier!=gold', 'a,', '-a', Array(17).fill('a').join()])(
  '%j is no selector',
  (text) => {
    expect(text).not.toMatch(selectorPattern);
  },
);

test('what has no labels is found by no selector', () => {
  expect(selects(parseSelector('tier'), undefined)).toBe(false);
});
