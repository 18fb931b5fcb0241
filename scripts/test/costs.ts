/** How much processor time each test file took, as `test/harness/processor-time.ts` says it, and the files that took most of it. */
import { existsSync, readFileSync } from 'node:fs';

/** Path of the file to which test files append a line each. */
export const costsVariable = 'ISTHMUS_TEST_COSTS';

/** Seconds. */
export interface FileCost {
  readonly file: string;
  /** Of its own process, imports included. */
  readonly own: number;
  /** Of programs that it has started and waited for. Containers and the API servers of the pool are not among them. */
  readonly started: number;
}

const ticksPerSecond = 100;
/** The fields behind the name of the program, which may have spaces: proc_pid_stat(5) counts utime as the 14th of all, the first of these is the third. */
const utime = 11;

/** `stat`: text of `/proc/PID/stat`. */
export function secondsOf(stat: string): Omit<FileCost, 'file'> {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const seconds = (first: number): number => (Number(fields[first]) + Number(fields[first + 1])) / ticksPerSecond;
  return { own: seconds(utime), started: seconds(utime + 2) };
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
  const total = ({ own, started }: Omit<FileCost, 'file'>): number => own + started;
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
