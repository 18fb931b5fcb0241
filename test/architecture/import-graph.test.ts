import { describe, expect, test } from 'vitest';
import { cycles, fileCycles, folderRings, importsOf } from './import-graph.ts';

describe('imports are read from the text', () => {
  const cases = [
    { text: `import { a } from './b.ts';`, to: 'x/b.ts', typeOnly: false },
    { text: `import a from '../b.ts';`, to: 'b.ts', typeOnly: false },
    { text: `import a, { b } from './b.ts';`, to: 'x/b.ts', typeOnly: false },
    { text: `import * as a from '#shared/b.ts';`, to: 'shared/b.ts', typeOnly: false },
    { text: `import './b.ts';`, to: 'x/b.ts', typeOnly: false },
    { text: `import { type A, b } from './b.ts';`, to: 'x/b.ts', typeOnly: false },
    { text: `export { a } from './b.ts';`, to: 'x/b.ts', typeOnly: false },
    { text: `export * from './b.ts';`, to: 'x/b.ts', typeOnly: false },
    { text: `const a = await import('./b.ts');`, to: 'x/b.ts', typeOnly: false },
    { text: `import {\n  a,\n  type B,\n} from './b.ts';`, to: 'x/b.ts', typeOnly: false },
    { text: `import type { A } from './b.ts';`, to: 'x/b.ts', typeOnly: true },
    { text: `import type A from './b.ts';`, to: 'x/b.ts', typeOnly: true },
    { text: `import { type A, type B } from './b.ts';`, to: 'x/b.ts', typeOnly: true },
    { text: `export type { A } from './b.ts';`, to: 'x/b.ts', typeOnly: true },
  ];
  test.each(cases)('$text', ({ text, to, typeOnly }) => {
    expect(importsOf('x/a.ts', text)).toEqual([{ from: 'x/a.ts', to, typeOnly }]);
  });

  test.each([`export const a = 'b';`, `export function f() {\n  return 'from';\n}`, `const a = [\n  'b',\n];`])(
    'and nothing else: %s',
    (text) => {
      expect(importsOf('x/a.ts', text)).toEqual([]);
    },
  );
});

test('cycles are the groups of nodes that reach each other', () => {
  const edges = ['ab', 'bc', 'ca', 'cd', 'de', 'ed', 'ef', 'gg'].map((edge) => [edge[0], edge[1]] as [string, string]);
  expect(cycles(edges)).toEqual([
    ['a', 'b', 'c'],
    ['d', 'e'],
  ]);
});

test('a cycle of files counts types, a ring of folders does not', () => {
  const imports = [
    { from: 'x/a.ts', to: 'y/b.ts', typeOnly: false },
    { from: 'y/b.ts', to: 'x/a.ts', typeOnly: true },
    { from: 'y/c.ts', to: 'x/d.ts', typeOnly: true },
  ];
  expect(fileCycles(imports)).toEqual([['x/a.ts', 'y/b.ts']]);
  expect(folderRings(imports)).toEqual([]);
  expect(folderRings([...imports, { from: 'y/c.ts', to: 'x/d.ts', typeOnly: false }])).toEqual([['x', 'y']]);
});
