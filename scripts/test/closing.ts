/** The last lines of a run: what failed, which files are flaky, and one line that counts. */
import type { Failure, Outcome } from './vitest-report.ts';

export interface Result {
  readonly passed: number;
  readonly failed: number;
  /** One text for each failure. */
  readonly told: readonly string[];
  /** Files that failed beside others and passed alone, with what they said the first time. */
  readonly flaky: readonly Flaky[];
}

interface Flaky {
  readonly file: string;
  readonly told: readonly string[];
}

export const nothing: Result = { passed: 0, failed: 0, told: [], flaky: [] };

export const sum = (a: Result, b: Result): Result => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  told: [...a.told, ...b.told],
  flaky: [...a.flaky, ...b.flaky],
});

type Relative = (file: string) => string;

/** In place of a file: vitest's own process ended, and no test failed. */
const theRunner = 'the test runner';
const nameOf = (file: string, relative: Relative): string => relative(file) || theRunner;

const words = ({ file, title, message }: Failure, relative: Relative): string =>
  [nameOf(file, relative), ...(title === undefined ? [] : [title])].join(' > ').concat('\n', message);

export const resultOf = ({ passed, failures }: Outcome, relative: Relative): Result => ({
  passed: [...passed.values()].reduce((total, count) => total + count, 0),
  failed: failures.length,
  told: failures.map((failure) => words(failure, relative)),
  flaky: [],
});

/** `counted` is what counts after the files that failed first have run alone. */
export function resultOfTwo(first: Outcome, counted: Outcome, relative: Relative): Result {
  const broken = new Set(counted.failures.map(({ file }) => file));
  const files = [...new Set(first.failures.map(({ file }) => file))].filter((file) => !broken.has(file));
  const flaky = files.map((file) => ({
    file: nameOf(file, relative),
    told: first.failures.filter((failure) => failure.file === file).map((failure) => words(failure, relative)),
  }));
  return { ...resultOf(counted, relative), flaky };
}

/** Ends with `N passed, N failed` as a line of its own: CI looks for it. A flaky file has passed in the end, and counts as such. */
export function closingLines({ passed, failed, told, flaky }: Result, seconds: number): readonly string[] {
  const suspect = flaky.find(({ file }) => file !== theRunner);
  return [
    ...(told.length > 0 ? ['', 'what failed:', '', told.join('\n\n')] : []),
    ...flaky.flatMap((one) => ['', `failed beside others: ${one.told.join('\n')}`]),
    '',
    `all of it took ${seconds.toFixed(0)} s`,
    ...(flaky.length > 0
      ? [
          `${flaky.length} flaky (failed beside others, passed alone): ${flaky.map(({ file }) => file).join(', ')}`,
          ...(suspect === undefined ? [] : [`find out why: npm run test:flaky -- ${suspect.file} --runs 10 --busy 2`]),
        ]
      : []),
    `${passed} passed, ${failed} failed`,
  ];
}
