import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sameContent } from './json-equality.ts';

test.each<[unknown, unknown, boolean]>([
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
  [{ a: 1, b: undefined }, { a: 1 }, true],
  [{ a: 1, b: null }, { a: 1 }, true],
  [{ a: 1, b: [] }, { a: 1 }, true],
  [undefined, null, true],
  [undefined, [], true],
  [{ a: [{ b: null }] }, { a: [{}] }, true],
  [undefined, {}, false],
  [{ a: '' }, {}, false],
  [{ a: 0 }, { a: false }, false],
  [[1, 2], [2, 1], false],
  [[null], [], false],
  [{ 0: 'a' }, ['a'], false],
])('%j and %j: %s', (a, b, same) => {
  expect(sameContent(a, b)).toBe(same);
  expect(sameContent(b, a)).toBe(same);
});

test('a value says the same as its copy, and something else once a text of it has changed', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), (object, key) => {
      expect(sameContent(object, structuredClone(object))).toBe(true);
      expect(sameContent({ ...object, [key]: 'before' }, { ...object, [key]: 'after' })).toBe(false);
    }),
  );
});
