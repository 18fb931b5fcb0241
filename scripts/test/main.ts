/** `npm test`: every check of the repository in the order in which a failure is cheapest, then one line that counts. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ensureAwsCounterparts } from '#scripts/setup/aws-counterparts.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureNode24 } from '#scripts/setup/node24.ts';
import { setUpMachine } from '#scripts/setup/setup.ts';
import { background, type Execute, foreground } from './programs.ts';
import { type Failure, type Outcome, readReport, secondRun } from './vitest-report.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-test-'));

interface Tally {
  passed: number;
  failed: number;
  /** For the end of the output, where it is found. */
  told?: readonly string[];
}
interface Step {
  readonly name: string;
  readonly run: (execute: Execute) => Promise<Ended>;
}
interface Ended {
  readonly tally: Tally;
  /** What failed beside others is tried once more with the machine to itself; that tally counts. */
  readonly again?: { readonly files: readonly string[]; readonly run: (execute: Execute) => Promise<Tally> };
}

/** One passed or failed check by exit code. */
const check = (name: string, ...argv: [string, ...string[]]): Step => ({
  name,
  run: async (execute) => ({
    tally: (await execute(argv)) === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1, told: [name] },
  }),
});

const telling = ({ file, title, message }: Failure): string =>
  [path.relative(root, file), ...(title === undefined ? [] : [title])].join(' > ').concat('\n', message);

async function vitest(execute: Execute, name: string, node: string, args: readonly string[]): Promise<Outcome> {
  const report = path.join(scratch, `${name.replaceAll(/\W+/g, '-')}.json`);
  const program = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const code = await execute([node, program, 'run', ...args, ...reporters]);
  const outcome = existsSync(report) ? readReport(report) : { passed: new Map<string, number>(), failures: [] };
  if (code === 0 || outcome.failures.length > 0) return outcome;
  const message = `the test runner ended with code ${code}, and no test failed: see its output`;
  return { ...outcome, failures: [{ file: root, message }] };
}

/** Counts single tests from vitest's own report. */
const tests = (name: string, node: string, ...args: string[]): Step => ({
  name,
  run: async (execute) => ({ tally: tallyOf(await vitest(execute, name, node, args)) }),
});

/**
 * Tests that wait for real time to pass, or share it with another step. A file that fails beside others runs once more alone; its second outcome
 * counts, and its first is told at the end.
 */
const testsBeside = (name: string, node: string, ...args: string[]): Step => ({
  name,
  run: async (execute) => {
    const first = await vitest(execute, name, node, args);
    const tally = tallyOf(first);
    if (first.failures.length === 0 || first.failures.some(({ file }) => file === root)) return { tally };
    const files = [...new Set(first.failures.map(({ file }) => path.relative(root, file)))];
    const project = args.slice(0, 2);
    const run = async (alone: Execute): Promise<Tally> => {
      const second = await vitest(alone, `${name} again`, node, [...project, '--no-file-parallelism', ...files]);
      const counted = tallyOf(secondRun(first, second));
      return {
        ...counted,
        told: [...(counted.told ?? []), ...first.failures.map((one) => `(beside others) ${telling(one)}`)],
      };
    };
    return { tally, again: { files, run } };
  },
});

const tallyOf = ({ passed, failures }: Outcome): Tally => ({
  passed: [...passed.values()].reduce((sum, count) => sum + count, 0),
  failed: failures.length,
  told: failures.map(telling),
});

const tool = (file: string) => path.join(root, 'node_modules', file);

const onBoth = ['agent/', 'shared/', 'control/', 'functions/', 'cli/'];

/** One after the other; what stands together in a row runs at the same time, the first of them before the reader's eyes and the others on the time that it leaves. */
const rows = (node24: string): Step[][] => [
  [check('lint', process.execPath, tool('@biomejs/biome/bin/biome'), 'ci', '.')],
  [check('types', process.execPath, tool('typescript/bin/tsc'), '-b')],
  [check('generated files are current', process.execPath, 'scripts/run.mjs', 'scripts/gen/main.ts', '--check')],
  [tests('unit and contract tests', process.execPath, '--project', 'fast')],
  [testsBeside('tests on real components', process.execPath, '--project', 'real')],
  [
    // Whole clusters mostly wait.
    testsBeside('whole clusters', process.execPath, '--project', 'system'),
    check('cloud templates', process.execPath, 'scripts/run.mjs', 'scripts/templates/main.ts'),
    // What builds, deploys and tests runs on Node 20 only; what users run, on both.
    testsBeside('unit tests on Node 24', node24, '--project', 'fast', ...onBoth),
    testsBeside('API server tests on Node 24', node24, '--project', 'real', 'kube/', 'test/contract/crds'),
  ],
];

/** Whole clusters mostly wait; what runs beside them gets a share of what they leave. */
const niceness = 10;
const only = process.argv.slice(2);
const total: Tally = { passed: 0, failed: 0 };
const told: string[] = [];
const started = Date.now();
await setUpMachine({ log: (line) => console.log(line) });
await ensureAwsCounterparts({ root, cache: cacheDir(), log: (line) => console.log(line) });
const node24 = await ensureNode24({ root, cache: cacheDir(), log: (line) => console.log(line) });

interface Taken extends Ended {
  readonly name: string;
  readonly seconds: number;
}

async function take({ name, run }: Step, execute: Execute): Promise<Taken> {
  const at = Date.now();
  return { ...(await run(execute)), name, seconds: (Date.now() - at) / 1000 };
}

const tell = ({ name, seconds }: Taken, tally: Tally): void =>
  console.log(`== ${name}: ${tally.failed === 0 ? 'ok' : `${tally.failed} failed`} in ${seconds.toFixed(0)} s`);

/** The first before the reader's eyes; the others one after the other beside it, and told when it has ended, so that two outputs never mix. */
async function takeRow([first, ...others]: readonly [Step, ...Step[]]): Promise<Taken[]> {
  console.log(`\n== ${first.name}`);
  const before = take(first, foreground({ cwd: root })).then((taken) => {
    tell(taken, taken.tally);
    return taken;
  });
  const beside: { readonly taken: Taken; readonly logFile: string }[] = [];
  for (const [i, step] of others.entries()) {
    const logFile = path.join(scratch, `beside-${i}.log`);
    beside.push({ logFile, taken: await take(step, background({ cwd: root, logFile, niceness })) });
  }
  const shown = await before;
  for (const { taken, logFile } of beside) {
    console.log(`\n== ${taken.name}, beside ${first.name}\n${readFileSync(logFile, 'utf8')}`);
    tell(taken, taken.tally);
  }
  return [shown, ...beside.map(({ taken }) => taken)];
}

async function count(taken: Taken): Promise<void> {
  let { tally } = taken;
  if (taken.again !== undefined) {
    console.log(`\n== ${taken.name}, once more and alone: ${taken.again.files.join(', ')}`);
    const at = Date.now();
    tally = await taken.again.run(foreground({ cwd: root }));
    tell({ ...taken, seconds: (Date.now() - at) / 1000 }, tally);
  }
  total.passed += tally.passed;
  total.failed += tally.failed;
  told.push(...(tally.told ?? []));
}

const isWanted = ({ name }: Step): boolean => only.length === 0 || only.some((word) => name.includes(word));
for (const row of rows(node24)) {
  const [first, ...others] = row.filter(isWanted);
  if (first !== undefined) for (const taken of await takeRow([first, ...others])) await count(taken);
}
rmSync(scratch, { recursive: true, force: true });
if (told.length > 0) console.log(`\nwhat failed:\n\n${told.join('\n\n')}`);
console.log(`\nall of it took ${((Date.now() - started) / 1000).toFixed(0)} s`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
