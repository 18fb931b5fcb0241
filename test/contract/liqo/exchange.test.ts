import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { actionsOf, type Exchange, filled, learned, outcome, type Step, unmet, wordsIn } from './exchange.ts';

const here = import.meta.dirname;
const files = (await readdir(here)).filter((name) => name.endsWith('.yaml')).sort();
const exchanges = await Promise.all(
  files.map(async (name) => ({ name, exchange: parse(await readFile(path.join(here, name), 'utf8')) as Exchange })),
);
const nothing = new Map<string, string>();

test('there is an exchange of each direction', () => {
  expect(exchanges.map(({ exchange }) => `${exchange.liqo} ${exchange.isthmusIs}`)).toEqual([
    '1.2.0 provider',
    '1.2.0 consumer',
  ]);
});

test.each(exchanges)('each step of $name is one act of one side', ({ exchange }) => {
  for (const step of exchange.steps) {
    const [action, ...more] = actionsOf(step);
    expect([more, step.at, step.by]).toEqual([[], expect.stringMatching(/^(rome|milan)$/), expect.any(String)]);
    expect(action === 'expect' || action === 'absent').toBe(step.by === 'isthmus');
  }
  expect(exchange.steps.filter((step) => step.expect !== undefined).length).toBeGreaterThan(5);
});

test('an object has to say all that is expected of it, lists in any order, and may say more', () => {
  const actual = {
    a: 'x',
    list: [
      { type: 'A', status: 'No' },
      { type: 'B', status: 'Yes', why: 'z' },
    ],
  };
  expect(unmet({ list: [{ type: 'B', status: 'Yes' }] }, actual, nothing)).toEqual([]);
  expect(unmet({ list: [{ type: 'A', status: 'Yes' }] }, actual, nothing)).toHaveLength(1);
  expect(unmet({ a: 'y' }, actual, nothing)).toEqual(['.a: is "x", not "y"']);
  expect(unmet({ a: '$any', b: '$any' }, actual, nothing)).toEqual(['.b: is undefined, not a text']);
  expect(unmet({ a: '$certificate rome liqo.io' }, actual, nothing)).toEqual([
    '.a: is a certificate of nobody: it is no certificate',
  ]);
  expect(unmet({ a: 'x' }, undefined, nothing)).toHaveLength(1);
  expect(unmet({ a: '$nonce' }, actual, new Map([['nonce', 'y']]))).toEqual(['.a: is "x", not $nonce']);
});

test('words that are known take their place, and one that is not known yet ends the replay', () => {
  const known = new Map([['nonce', 'n']]);
  expect(wordsIn({ a: ['$nonce', '$any', '$request rome liqo.io'], n: 1 })).toEqual(['nonce', 'request rome liqo.io']);
  expect(filled({ a: ['$nonce'], n: 1 }, known)).toEqual({ a: ['n'], n: 1 });
  expect(() => filled('$signature', known)).toThrow('$signature is not known at this step');
  expect([...learned({ data: [{ a: '$nonce', b: '$any' }] }, { data: [{ a: 'n', b: 'x' }] }, nothing)]).toEqual([
    ['nonce', 'n'],
  ]);
});

test('two recordings of which one saw an object on its way have the same outcome', () => {
  const slice = { apiVersion: 'v1', kind: 'Slice', metadata: { name: 's' } };
  const step = (action: object): Step => ({ by: 'replicator', at: 'milan', ...action });
  const early = [step({ create: { ...slice, spec: { a: 1 } } }), step({ update: { ...slice, spec: { a: 1, b: 2 } } })];
  const late = [step({ create: { ...slice, spec: { a: 1, b: 2 } } })];
  const of = (steps: readonly Step[]) => outcome({ liqo: '1', isthmusIs: 'provider', steps });
  expect(of(early)).toEqual(of(late));
  const gone = { 'liqo milan Slice  s': { apiVersion: 'v1', spec: { a: 1, b: 2 } }, 'gone milan Slice  s': true };
  expect(of([...early, step({ delete: slice })])).toEqual(gone);
  expect(of([...early, { by: 'isthmus', at: 'milan', absent: slice }])).toEqual(gone);
});

test('it is the same whether an object was deleted by its owner or went with its namespace', () => {
  const slice = { apiVersion: 'v1', kind: 'Slice', metadata: { namespace: 'ns', name: 's' } };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ns' } };
  const step = (action: object): Step => ({ by: 'liqoctl', at: 'milan', ...action });
  const of = (...steps: readonly Step[]) => outcome({ liqo: '1', isthmusIs: 'provider', steps });
  const [made, deleted, ended] = [step({ create: slice }), step({ delete: slice }), step({ delete: namespace })];
  expect(of(made, deleted, ended)).toEqual(of(made, ended));
  expect(of(made, deleted)).not.toEqual(of(made));
});
