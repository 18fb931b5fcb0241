import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { actionsOf, type Exchange, filled, unmet, valueAt } from './exchange.ts';

const here = import.meta.dirname;
const files = (await readdir(here)).filter((name) => name.endsWith('.yaml')).sort();
const exchanges = await Promise.all(
  files.map(async (name) => ({ name, exchange: parse(await readFile(path.join(here, name), 'utf8')) as Exchange })),
);

test('there is an exchange of each direction', () => {
  expect(exchanges.map(({ exchange }) => `${exchange.liqo} ${exchange.isthmusIs}`)).toEqual([
    '1.2.0 provider',
    '1.2.0 consumer',
  ]);
});

test.each(exchanges)('each step of $name is one act of one side, with where it is described', ({ exchange }) => {
  for (const step of exchange.steps) {
    const [action, ...more] = actionsOf(step);
    expect([more, step.from, step.by]).toEqual([[], expect.any(String), expect.any(String)]);
    expect(action === 'expect' || action === 'absent').toBe(step.by === 'isthmus');
    expect(step.at !== undefined).toBe(exchange.isthmusIs === 'consumer');
  }
  expect(exchange.steps.filter((step) => actionsOf(step)[0] === 'expect').length).toBeGreaterThan(5);
});

test('an object has to say all that is expected of it, lists in any order, and may say more', () => {
  const actual = {
    a: 'x',
    list: [
      { type: 'A', status: 'No' },
      { type: 'B', status: 'Yes', why: 'z' },
    ],
  };
  expect(unmet({ list: [{ type: 'B', status: 'Yes' }] }, actual)).toEqual([]);
  expect(unmet({ list: [{ type: 'A', status: 'Yes' }] }, actual)).toHaveLength(1);
  expect(unmet({ a: 'y' }, actual)).toEqual(['.a: is "x", not "y"']);
  expect(unmet({ a: '$any', b: '$any' }, actual)).toEqual(['.b: is undefined, not a text']);
  expect(unmet({ a: '$certificate rome liqo.io' }, actual)).toEqual(['.a: is no certificate']);
  expect(unmet({ a: 'x' }, undefined)).toHaveLength(1);
});

test('values that are known take their place, and one that is not known yet ends the replay', () => {
  const known = new Map([['user', 'milan-0123']]);
  expect(filled({ a: ['$user', '$any', '$certificate $user rome'], n: 1 }, known)).toEqual({
    a: ['milan-0123', '$any', '$certificate milan-0123 rome'],
    n: 1,
  });
  expect(() => filled('$nonce', known)).toThrow('$nonce is not known at this step');
  expect(valueAt({ data: { nonce: 'n' } }, 'data.nonce')).toBe('n');
  expect(() => valueAt({}, 'data.nonce')).toThrow('data.nonce is undefined');
});
