import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { appliedBy } from './owned-fields.ts';

const object = (content: object, fieldsV1: object, entry: object = {}): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: {
      name: 'a',
      namespace: 'n',
      resourceVersion: '7',
      managedFields: [
        { manager: 'other', operation: 'Apply', fieldsV1: { 'f:data': {} } },
        { manager: 'us', operation: 'Update', fieldsV1: { 'f:data': {} } },
        { manager: 'us', operation: 'Apply', subresource: 'status', fieldsV1: { 'f:status': {} } },
        { manager: 'us', operation: 'Apply', fieldsV1, ...entry },
      ],
    },
    ...content,
  }) as KubeObject;
const identity = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', namespace: 'n' } };

test.each([
  ['single fields, and none of others', { spec: { a: 1, b: 2 } }, { 'f:spec': { 'f:a': {} } }, { spec: { a: 1 } }],
  ['a field that is owned as a whole', { data: { x: '1' } }, { 'f:data': {} }, { data: { x: '1' } }],
  ['an empty map of which it owns only the existence', { e: { x: 1 } }, { 'f:e': { '.': {} } }, { e: {} }],
  ['an empty list likewise', { e: [1] }, { 'f:e': { '.': {} } }, { e: [] }],
  [
    'elements of a list by their keys',
    {
      ports: [
        { port: 1, protocol: 'TCP', name: 'x' },
        { port: 2, protocol: 'TCP' },
      ],
    },
    { 'f:ports': { 'k:{"port":1,"protocol":"TCP"}': { '.': {}, 'f:port': {}, 'f:name': {} } } },
    { ports: [{ port: 1, name: 'x' }] },
  ],
  ['elements of a set', { verbs: ['get', 'list'] }, { 'f:verbs': { 'v:"list"': {} } }, { verbs: ['list'] }],
  ['an element by its place', { list: ['x', 'y'] }, { 'f:list': { 'i:1': {} } }, { list: ['y'] }],
  [
    'elements in the order of the list, which is not that of the keys',
    { env: [{ name: 'z', value: '1' }, { name: 'a' }] },
    { 'f:env': { 'k:{"name":"a"}': { 'f:name': {} }, 'k:{"name":"z"}': { 'f:name': {}, 'f:value': {} } } },
    { env: [{ name: 'z', value: '1' }, { name: 'a' }] },
  ],
  ['what is gone since', {}, { 'f:spec': { 'f:a': {} } }, {}],
])('a manager gets back %s', (_what, content, fields, expected) => {
  expect(appliedBy(object(content, fields), 'us')).toEqual({ ...identity, ...expected });
});

test('labels come with the name of the object, and nothing that the server keeps', () => {
  const labelled = object({}, { 'f:metadata': { 'f:labels': { '.': {}, 'f:a/b.c': {} } } });
  labelled.metadata.labels = { 'a/b.c': '1', foreign: '2' };
  expect(appliedBy(labelled, 'us')?.metadata).toEqual({ name: 'a', namespace: 'n', labels: { 'a/b.c': '1' } });
});

test('an object that it has not applied has nothing of it', () => {
  expect(appliedBy(object({}, {}), 'them')).toBeUndefined();
  expect(appliedBy({ ...identity } as KubeObject, 'us')).toBeUndefined();
});

/** As a server records an application of maps and scalars. */
const fieldsOf = (value: unknown): object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries([['.', {}], ...Object.entries(value).map(([key, one]) => [`f:${key}`, fieldsOf(one)])])
    : {};

test('everything that was applied in maps comes back, without what other managers added', () => {
  const { tree } = fc.letrec<{ tree: Record<string, unknown> }>((tie) => ({
    tree: fc.dictionary(
      fc.stringMatching(/^[a-z./-]{1,6}$/),
      fc.oneof({ maxDepth: 4 }, fc.string(), fc.integer(), tie('tree')),
      { maxKeys: 4 },
    ),
  }));
  fc.assert(
    fc.property(
      tree,
      fc.dictionary(fc.stringMatching(/^[A-Z]{1,4}$/), fc.anything(), { maxKeys: 3 }),
      (mine, theirs) => {
        const applied = { spec: mine };
        const { '.': _, ...fields } = fieldsOf(applied) as Record<string, object>;
        expect(appliedBy(object({ spec: { ...theirs, ...mine } }, fields), 'us')).toEqual({ ...identity, ...applied });
      },
    ),
  );
});
