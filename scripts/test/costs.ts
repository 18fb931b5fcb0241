/** How much processor time each test file took, as `test/harness/processor-time.ts` says it, and the files that took most of it. */
import { existsSync, readFileSync } from 'node:fs';
import type { ProcessorSeconds } from '#test/harness/processor-seconds.ts';

/** Path of the file to which test files append a line each. */
export const costsVariable = 'ISTHMUS_TEST_COSTS';

/** Containers and the API servers of the pool are among neither. */
export interface FileCost extends ProcessorSeconds {
  readonly file: string;
}

export const readCosts = (file: string): FileCost[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as FileCost)
    : [];

/** One line with the sum, and one for each of the `most` files that took most. */
export function costLines(costs: readonly FileCost[], most: number, relative: (file: string) => string): string[] {
  if (costs.length === 0) return [];
  const total = ({ own, started }: ProcessorSeconds): number => own + started;
  const byFile = new Map<string, FileCost>();
  // A file that failed has run twice.
  for (const { file, own, started } of costs) {
    const before = byFile.get(file) ?? { own: 0, started: 0 };
    byFile.set(file, { file, own: before.own + own, started: before.started + started });
  }
  const dearest = [...byFile.values()].sort((a, b) => total(b) - total(a)).slice(0, most);
  const sum = costs.reduce((all, one) => all + total(one), 0);
  return [
    `${byFile.size} files of tests on components took ${sum.toFixed(0)} s of the processors; most of it (own process + programs):`,
    ...dearest.map(({ file, own, started }) => `  ${own.toFixed(0)} + ${started.toFixed(0)} s  ${relative(file)}`),
  ];
}
