import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readReport, secondRun } from './vitest-report.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-report-'));
afterAll(() => rmSync(folder, { recursive: true }));

const one = (fullName: string, status: string, ...failureMessages: string[]) => ({ fullName, status, failureMessages });
function report(...testResults: object[]) {
  const file = path.join(folder, `${crypto.randomUUID()}.json`);
  writeFileSync(file, JSON.stringify({ testResults }));
  return readReport(file);
}

test('passed tests are counted by file, and failed ones told with the first and the last lines of what they said', () => {
  const lines = Array.from({ length: 50 }, (_, line) => `line ${line}`);
  const said = lines.toSpliced(48, 0, '    at run (/root/node_modules/x/run.js:1:2)', '    at node:net:3:4').join('\n');
  const { passed, failures } = report(
    { name: '/a.test.ts', status: 'passed', assertionResults: [one('x', 'passed'), one('y', 'passed')] },
    { name: '/b.test.ts', status: 'failed', assertionResults: [one('x', 'passed'), one('z', 'failed', said)] },
  );
  expect(Object.fromEntries(passed)).toEqual({ '/a.test.ts': 2, '/b.test.ts': 1 });
  const message = [...lines.slice(0, 6), '(14 lines left out)', ...lines.slice(20)].join('\n');
  expect(failures).toEqual([{ file: '/b.test.ts', title: 'z', message }]);
});

test('a file whose preparation failed is a failure although none of its tests is', () => {
  const { failures } = report({
    name: '/a.test.ts',
    status: 'failed',
    message: 'Error: no API server',
    assertionResults: [one('x', 'skipped')],
  });
  expect(failures).toEqual([{ file: '/a.test.ts', message: 'Error: no API server' }]);
});

test('a second run replaces what the first one said of its files, and of no other', () => {
  const first = report(
    { name: '/a.test.ts', status: 'passed', assertionResults: [one('x', 'passed')] },
    { name: '/b.test.ts', status: 'failed', assertionResults: [one('y', 'passed'), one('z', 'failed', 'late')] },
    { name: '/c.test.ts', status: 'failed', assertionResults: [one('w', 'failed', 'wrong')] },
  );
  const mended = report(
    { name: '/b.test.ts', status: 'passed', assertionResults: [one('y', 'passed'), one('z', 'passed')] },
    { name: '/c.test.ts', status: 'failed', assertionResults: [one('w', 'failed', 'still wrong')] },
  );
  const counted = secondRun(first, mended);
  expect(Object.fromEntries(counted.passed)).toEqual({ '/a.test.ts': 1, '/b.test.ts': 2, '/c.test.ts': 0 });
  expect(counted.failures).toEqual([{ file: '/c.test.ts', title: 'w', message: 'still wrong' }]);
});

test('a second run that did not come to a file leaves its failure as it was', () => {
  const first = report({ name: '/a.test.ts', status: 'failed', assertionResults: [one('x', 'failed', 'wrong')] });
  expect(secondRun(first, report()).failures).toEqual(first.failures);
});
