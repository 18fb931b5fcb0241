/** Runs vitest and reads what it reports. */
import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { Execute } from './programs.ts';
import { type Outcome, readReport } from './vitest-report.ts';

export interface VitestPlace {
  readonly root: string;
  /** For the report. */
  readonly scratch: string;
  /** The `node` program. */
  readonly node: string;
}

export const vitestProgram = (root: string): string => path.join(root, 'node_modules', 'vitest', 'vitest.mjs');

/** A run that ends without success and without a failed test is itself a failure, of the file `root`. */
export async function runVitest(
  { root, scratch, node }: VitestPlace,
  execute: Execute,
  name: string,
  args: readonly string[],
): Promise<Outcome> {
  const report = path.join(scratch, `${name.replaceAll(/\W+/g, '-')}.json`);
  rmSync(report, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const { code, how, lastWords } = await execute([node, vitestProgram(root), 'run', ...args, ...reporters]);
  const outcome = existsSync(report) ? readReport(report) : { passed: new Map<string, number>(), failures: [] };
  if (code === 0 || outcome.failures.length > 0) return outcome;
  const message = `the test runner ended with ${how}, and no test failed; what it said last:\n${lastWords}`;
  return { ...outcome, failures: [{ file: root, message }] };
}
