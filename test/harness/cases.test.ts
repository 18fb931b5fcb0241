import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { casesOf, countOf, filesWithCases } from './cases.ts';

test('every file that takes some of its cases in npm test takes all of them in npm run test:long', () => {
  const found = execFileSync(
    'git',
    ['grep', '--untracked', '-l', "harness/cases.ts'", '--', '*.test.ts', ':!test/harness/cases.test.ts'],
    {
      cwd: repositoryRoot,
      encoding: 'utf8',
    },
  );
  expect(found.trim().split('\n')).toEqual([...filesWithCases]);
  const config = readFileSync(path.join(repositoryRoot, 'vitest.config.ts'), 'utf8');
  expect(config).toContain('include: [long, ...filesWithCases]');
  expect(config).toContain('env: allCases');
});

test('npm test takes the kept ones', () => {
  expect(casesOf([1, 2, 3], [2])).toEqual([2]);
  expect(countOf(8, 3)).toBe(3);
});
