/** When an apply would change something. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sameJson } from '#shared/domain/json-equality.ts';
import { covers } from './write-if-changed.ts';

test('everything covers itself and a part of itself', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), (object, key) => {
      expect(covers(object, object)).toBe(true);
      const { [key]: _removed, ...part } = object;
      expect(covers(object, part)).toBe(true);
    }),
  );
});

test.each<[unknown, unknown, boolean]>([
  [{ a: 1, b: 2 }, { a: 1 }, true],
  [{ a: 1 }, { a: 1, b: 2 }, false],
  [{ a: 1 }, { a: 1, b: undefined }, true],
  [{ a: [1, 2] }, { a: [1] }, false],
  [{ a: [{ b: 1, c: 2 }] }, { a: [{ b: 1 }] }, true],
  [undefined, {}, false],
  [{ a: null }, { a: {} }, false],
])('%j covers %j: %s', (actual, wanted, result) => expect(covers(actual, wanted)).toBe(result));

test('absent and undefined are the same JSON, order does not count', () => {
  expect(sameJson({ a: 1, b: undefined }, { a: 1 })).toBe(true);
  expect(sameJson({ a: 1, b: 2 }, { b: 2, a: 1 })).toBe(true);
  expect(sameJson(undefined, {})).toBe(false);
});
