/** What vitest's JSON report says of a run, as far as `npm test` counts and tells it. */
import { readFileSync } from 'node:fs';
import * as z from 'zod';

const Report = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().default(''),
      assertionResults: z.array(
        z.object({ fullName: z.string(), status: z.string(), failureMessages: z.array(z.string()).default([]) }),
      ),
    }),
  ),
});

export interface Failure {
  /** Absolute path of the test file. */
  readonly file: string;
  /** The test's full name; the file's own trouble (a hook, an import) has none. */
  readonly title?: string;
  /** What it said, without frames of other packages; a long text has lost its middle. */
  readonly message: string;
}
export interface Outcome {
  /** Passed tests of each file. */
  readonly passed: ReadonlyMap<string, number>;
  readonly failures: readonly Failure[];
}

const [headLines, tailLines] = [6, 30];

/** A program that failed says why in its last lines, an assertion in its first. */
function excerptOf(text: string): string {
  const lines = text.split('\n').filter((line) => !/^\s+at .*(node_modules|node:)/.test(line));
  const left = lines.length - headLines - tailLines;
  if (left <= 1) return lines.join('\n');
  return [...lines.slice(0, headLines), `(${left} lines left out)`, ...lines.slice(-tailLines)].join('\n');
}

/** `file`: path of the report. Throws when it is none. */
export function readReport(file: string): Outcome {
  const { testResults } = Report.parse(JSON.parse(readFileSync(file, 'utf8')));
  const passed = new Map<string, number>();
  const failures: Failure[] = [];
  for (const { name, status, message, assertionResults } of testResults) {
    passed.set(name, assertionResults.filter((one) => one.status === 'passed').length);
    const failed = assertionResults.filter((one) => one.status === 'failed');
    for (const { fullName, failureMessages } of failed)
      failures.push({ file: name, title: fullName, message: excerptOf(failureMessages[0] ?? '') });
    if (status === 'failed' && failed.length === 0) failures.push({ file: name, message: excerptOf(message) });
  }
  return { passed, failures };
}

/** What counts after the files that failed were run once more: their second outcome in place of the first. */
export function secondRun(first: Outcome, second: Outcome): Outcome {
  const again = new Set(first.failures.map(({ file }) => file));
  return {
    passed: new Map([...first.passed, ...[...second.passed].filter(([file]) => again.has(file))]),
    failures: [
      ...second.failures,
      // A second run that says nothing about a file has not taken the first one's failure back.
      ...first.failures.filter(({ file }) => !second.passed.has(file)),
    ],
  };
}
