import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withoutManagedFields } from './managed-fields.ts';

const fieldsV1 = {
  'f:metadata': { 'f:finalizers': { '.': {}, 'v:"a ] } \\" b"': {} } },
  'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': { 'f:status': {} } } },
};
const entry = { manager: 'kubelet', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1 };

test.each([
  { where: 'last, as of built-in kinds', metadata: { name: 'a', managedFields: [entry, entry] } },
  { where: 'first', metadata: { managedFields: [entry], name: 'a' } },
  {
    where: 'in the middle, as of custom resources',
    metadata: { labels: { a: 'b' }, managedFields: [entry], name: 'a' },
  },
  { where: 'alone', metadata: { managedFields: [] } },
])('managedFields that stand $where are cut out of an object, and the rest stays', ({ metadata }) => {
  const { managedFields: _, ...rest } = metadata as Record<string, unknown>;
  const object = (of: unknown) => ({ kind: 'Pod', metadata: of, spec: { containers: [{ args: ['[', ']'] }] } });
  expect(withoutManagedFields(JSON.stringify(object(metadata)))).toBe(JSON.stringify(object(rest)));
  const list = { items: [object(metadata), object(metadata)] };
  expect(withoutManagedFields(JSON.stringify(list))).toBe(JSON.stringify({ items: [object(rest), object(rest)] }));
});

test('text within a string stays, however much it looks like managedFields', () => {
  for (const value of [
    '"managedFields":[',
    ',"managedFields":[1],',
    '{"managedFields":[{}]}',
    '\\"managedFields":[',
    '\\',
  ]) {
    const text = JSON.stringify({ data: { a: value, 'b,"managedFields":[': [value] } });
    expect(withoutManagedFields(text)).toBe(text);
  }
});

test('what is not complete comes back as it is', () => {
  const text = JSON.stringify({ metadata: { managedFields: [entry] } });
  for (const length of [30, 60, text.length - 4])
    expect(withoutManagedFields(text.slice(0, length))).toBe(text.slice(0, length));
});

/** What JSON.parse gives for the text, with every array of that name taken out. */
function without(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(without);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, of]) =>
      name === 'managedFields' && Array.isArray(of) ? [] : [[name, without(of)]],
    ),
  );
}

test('any JSON means the same afterwards but for managedFields', () => {
  const name = fc.oneof(fc.constant('managedFields'), fc.string(), fc.constant('"managedFields":['));
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'small' },
      fc.string(),
      fc.integer(),
      name,
      fc.array(tie('json')),
      fc.dictionary(name, tie('json')),
    ),
  }));
  fc.assert(
    fc.property(json, (value) => {
      const clean = JSON.parse(JSON.stringify(value));
      expect(JSON.parse(withoutManagedFields(JSON.stringify(clean)))).toEqual(without(clean));
    }),
    { numRuns: 500 },
  );
});
