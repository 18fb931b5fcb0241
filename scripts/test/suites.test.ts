import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { chosen, lists, needsMachine, type Rows } from './suites.ts';

const all: readonly (readonly [string, Rows])[] = Object.entries(lists);
const namesOf = (rows: Rows): string[] => rows.flat().map(({ name }) => name);

test.each(all)('every suite of list %s has a name of its own, by which its duration is recorded', (_, rows) => {
  expect(new Set(namesOf(rows)).size).toBe(namesOf(rows).length);
});

test.each(all)('every program and folder that list %s names exists', (_, rows) => {
  const named = rows
    .flat()
    .flatMap((suite) =>
      suite.kind === 'check'
        ? suite.argv.filter((word) => word.includes('/'))
        : suite.paths.map((file) => (file.endsWith('/') ? file : `${file}.real.test.ts`)),
    );
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((file) => !existsSync(`${repositoryRoot}/${file}`))).toEqual([]);
});

test('the folder of whole clusters that vitest is told of exists', () => {
  const config = readFileSync(path.join(repositoryRoot, 'vitest.config.ts'), 'utf8');
  const [, name = ''] = /'test\/system\/([\w-]+)\/\*\.real/.exec(config) ?? [];
  expect([name, existsSync(path.join(repositoryRoot, 'test', 'system', name))]).toEqual(['whole-clusters', true]);
});

test('only suites of real components and whole clusters wait for packages and builds', () => {
  const free = Object.values(lists as Record<string, Rows>).flatMap((rows) =>
    rows.flat().filter((suite) => !needsMachine(suite)),
  );
  expect(free.map(({ name }) => name)).toEqual([
    'unit and contract tests',
    'types',
    'lint',
    'nothing is unused',
    'generated files are current',
    'no right is unused',
    'unit tests on Node 24',
    'cloud templates',
    '10,000 orderings',
  ]);
});

test('words choose suites by a part of their name, and keep which suites run side by side', () => {
  expect(namesOf(chosen(lists.test, ['real', 'lint']))).toEqual(['lint', 'tests on real components']);
  expect(chosen(lists.test, ['clusters', 'networks']).map((row) => row.length)).toEqual([2]);
  expect(namesOf(chosen(lists.long, []))).toEqual(namesOf(lists.long));
});

test('a word that is in no name is refused with the names that there are', () => {
  expect(() => chosen(lists.test, ['rael'])).toThrow(
    /no suite has "rael" in its name; there are: unit and contract tests, types/,
  );
});
