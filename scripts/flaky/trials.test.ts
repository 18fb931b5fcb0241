import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { startBusyLoops } from './busy.ts';
import { parseSuspects, projectsOf, summaryOf } from './trials.ts';

const file = 'scripts/flaky/trials.test.ts';
const parse = (...args: string[]) => parseSuspects(args, repositoryRoot);

test('ten runs beside one busy loop are the default', () => {
  expect(parse(file)).toEqual({ files: [file], runs: 10, busy: 1 });
  expect(parse(file, '--runs', '3', '--busy', '0')).toEqual({ files: [file], runs: 3, busy: 0 });
});

test('no file, an absent file and numbers out of range are refused by name', () => {
  expect(() => parse()).toThrow('which file?');
  expect(() => parse('absent.test.ts')).toThrow('there is no file absent.test.ts');
  expect(() => parse(file, '--runs', '0')).toThrow('--runs is "0": a whole number from 1 to 1000');
  expect(() => parse(file, '--busy', 'all')).toThrow('--busy is "all": a whole number from 0 to 64');
});

test('the ending of a file tells the projects that may have it', () => {
  expect(projectsOf('a.test.ts')).toEqual(['fast', 'thorough']);
  expect(projectsOf('a.long.test.ts')).toEqual(['long']);
  expect(projectsOf('a.real.test.ts')).toEqual(['real', 'network', 'system', 'examples']);
});

test('the summary counts the runs that failed and quotes the first failure', () => {
  const failure = { file: '/root/a.test.ts', title: 'arrives', message: 'not within 5 s' };
  const trials = [[], [failure], [{ ...failure, message: 'later' }]].map((failures) => ({ seconds: 4, failures }));
  expect(summaryOf(trials, { files: ['a.test.ts'], busy: 2 })).toEqual([
    '',
    'first failure, in run 2: arrives\nnot within 5 s',
    '',
    'a.test.ts beside 2 busy loops; the longest run took 4 s',
    '2 of 3 runs failed',
  ]);
  expect(summaryOf([{ seconds: 4, failures: [] }], { files: ['a.test.ts'], busy: 1 }).at(-1)).toBe(
    '0 of 1 runs failed',
  );
});

test('stopped busy loops leave no process behind', async () => {
  const children = (): string[] =>
    spawnSync('pgrep', ['-P', `${process.pid}`], { encoding: 'utf8' }).stdout.split('\n');
  const before = children().length;
  const stop = startBusyLoops(2);
  expect(children().length).toBe(before + 2);
  stop();
  await expect.poll(() => children().length, { timeout: 10_000 }).toBe(before);
});
