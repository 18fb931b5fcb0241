import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonical } from './canonical-json.ts';
import { sameContent, sameJson } from './json-equality.ts';

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

test.each<[unknown, unknown, boolean]>([
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
  [{ a: 1, b: undefined }, { a: 1 }, true],
  [undefined, undefined, true],
  [{ a: null }, {}, false],
  [{ a: [] }, {}, false],
  [null, undefined, false],
  [{ constructor: 'a' }, {}, false],
  [{ constructor: undefined }, {}, true],
  [[1, 2], [2, 1], false],
  [{ 0: 'a' }, ['a'], false],
])('as JSON, %j and %j: %s', (a, b, same) => {
  expect(sameJson(a, b)).toBe(same);
  expect(sameJson(b, a)).toBe(same);
});

test('two values are equal as JSON exactly when their canonical texts are', () => {
  const few = fc.constantFrom<unknown>(0, 1, 'a', '', null, true, [], {});
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      few,
      fc.array(tie('value'), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'constructor'), fc.option(tie('value'), { nil: undefined }), {
        maxKeys: 3,
      }),
    ),
  }));
  fc.assert(
    fc.property(value, value, (a, b) => {
      expect(sameJson(a, b)).toBe(canonical(a) === canonical(b));
      expect(sameJson(a, JSON.parse(canonical(a)))).toBe(true);
    }),
  );
});
