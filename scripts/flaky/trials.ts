/** What is asked of `npm run test:flaky`, and what it says in the end. Pure, but for the look at whether a file is there. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { inWords } from '#scripts/test/durations.ts';
import type { Failure } from '#scripts/test/vitest-report.ts';

export interface Suspects {
  /** Paths from the root. */
  readonly files: readonly string[];
  readonly runs: number;
  /** Busy loops beside each run. */
  readonly busy: number;
}

const most = { runs: 1_000, busy: 64 } as const;
const usage = 'npm run test:flaky -- FILE... [--runs N] [--busy K]';

/** Throws for a file that is not there, and for numbers out of range. `--runs` is 10 by default, `--busy` 1. */
export function parseSuspects(args: readonly string[], root: string): Suspects {
  const options = { runs: { type: 'string', default: '10' }, busy: { type: 'string', default: '1' } } as const;
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  if (positionals.length === 0) throw new Error(`which file? ${usage}`);
  const absent = positionals.find((file) => !existsSync(path.join(root, file)));
  if (absent !== undefined)
    throw new Error(`there is no file ${absent}: a path from the root of the repository is accepted`);
  return { files: positionals, runs: whole('runs', values.runs, 1), busy: whole('busy', values.busy, 0) };
}

function whole(name: keyof typeof most, text: string, least: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= most[name]) return value;
  throw new Error(`--${name} is ${JSON.stringify(text)}: a whole number from ${least} to ${most[name]} is accepted`);
}

/** Of vitest. Four share an ending; vitest runs a file in the one of them that includes it. */
export function projectsOf(file: string): readonly string[] {
  if (file.endsWith('.long.test.ts')) return ['long'];
  if (!file.endsWith('.real.test.ts')) return ['fast', 'thorough'];
  return ['real', 'network', 'system', 'examples'];
}

export interface Trial {
  readonly seconds: number;
  readonly failures: readonly Failure[];
}

export function summaryOf(
  trials: readonly Trial[],
  { files, busy }: Pick<Suspects, 'files' | 'busy'>,
): readonly string[] {
  const failed = trials.flatMap(({ failures }, index) =>
    failures.length > 0 ? [{ number: index + 1, failures }] : [],
  );
  const longest = Math.max(0, ...trials.map(({ seconds }) => seconds));
  const first = failed[0]?.failures[0];
  const where = first === undefined ? [] : [first.title ?? path.basename(first.file), first.message];
  return [
    ...(failed[0] === undefined ? [] : ['', `first failure, in run ${failed[0].number}: ${where.join('\n')}`]),
    '',
    `${files.join(', ')} beside ${busy} busy loop${busy === 1 ? '' : 's'}; the longest run took ${inWords(longest)}`,
    `${failed.length} of ${trials.length} runs failed`,
  ];
}
