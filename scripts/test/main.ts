/** `npm test`: every check of the repository in the order in which a failure is cheapest, then one line that counts. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ensureAwsCounterparts } from '#scripts/setup/aws-counterparts.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureNode24 } from '#scripts/setup/node24.ts';
import { setUpMachine } from '#scripts/setup/setup.ts';
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
  readonly run: () => Promise<Tally>;
}

/** One passed or failed check by exit code. */
const check = (name: string, ...argv: [string, ...string[]]): Step => ({
  name,
  run: async () => ((await execute(argv)) === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1, told: [name] }),
});

const telling = ({ file, title, message }: Failure): string =>
  [path.relative(root, file), ...(title === undefined ? [] : [title])].join(' > ').concat('\n', message);

async function vitest(name: string, node: string, args: readonly string[]): Promise<Outcome> {
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
  run: async () => tallyOf(await vitest(name, node, args)),
});

/**
 * Tests of real components wait for real time to pass. A file that fails beside others runs once more alone; its second outcome counts, and its
 * first is told at the end.
 */
const realTests = (name: string, node: string, ...args: string[]): Step => ({
  name,
  run: async () => {
    const first = await vitest(name, node, args);
    if (first.failures.length === 0 || first.failures.some(({ file }) => file === root)) return tallyOf(first);
    const files = [...new Set(first.failures.map(({ file }) => path.relative(root, file)))];
    const project = args.slice(0, 2);
    console.log(`\n== once more, alone: ${files.join(', ')}`);
    const second = await vitest(`${name} again`, node, [...project, '--no-file-parallelism', ...files]);
    const tally = tallyOf(secondRun(first, second));
    return {
      ...tally,
      told: [...(tally.told ?? []), ...first.failures.map((one) => `(beside others) ${telling(one)}`)],
    };
  },
});

const tallyOf = ({ passed, failures }: Outcome): Tally => ({
  passed: [...passed.values()].reduce((sum, count) => sum + count, 0),
  failed: failures.length,
  told: failures.map(telling),
});

const tool = (file: string) => path.join(root, 'node_modules', file);

const steps = (node24: string): Step[] => [
  check('lint', process.execPath, tool('@biomejs/biome/bin/biome'), 'ci', '.'),
  check('types', process.execPath, tool('typescript/bin/tsc'), '-b'),
  check('generated files are current', process.execPath, 'scripts/run.mjs', 'scripts/gen/main.ts', '--check'),
  check('cloud templates', process.execPath, 'scripts/run.mjs', 'scripts/templates/main.ts'),
  tests('unit and contract tests', process.execPath, '--project', 'fast'),
  realTests('tests on real components', process.execPath, '--project', 'real'),
  realTests('whole clusters', process.execPath, '--project', 'system'),
  // What builds, deploys and tests runs on Node 20 only; what users run, on both.
  tests('unit tests on Node 24', node24, '--project', 'fast', 'agent/', 'shared/', 'control/', 'functions/', 'cli/'),
  realTests('API server tests on Node 24', node24, '--project', 'real', 'agent/kube/', 'test/contract/crds'),
];

function execute(argv: readonly [string, ...string[]]): Promise<number> {
  const [command, ...args] = argv;
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, FORCE_COLOR: '0' },
    });
    child.on('error', (error) => {
      console.error(`cannot start ${command}: ${error.message}`);
      resolve(1);
    });
    child.on('close', (code) => resolve(code ?? 1));
  });
}

const only = process.argv.slice(2);
const total: Tally = { passed: 0, failed: 0 };
const told: string[] = [];
const started = Date.now();
await setUpMachine({ log: (line) => console.log(line) });
await ensureAwsCounterparts({ root, cache: cacheDir(), log: (line) => console.log(line) });
const node24 = await ensureNode24({ root, cache: cacheDir(), log: (line) => console.log(line) });
for (const step of steps(node24).filter((s) => only.length === 0 || only.some((word) => s.name.includes(word)))) {
  const at = Date.now();
  console.log(`\n== ${step.name}`);
  const tally = await step.run();
  total.passed += tally.passed;
  total.failed += tally.failed;
  told.push(...(tally.told ?? []));
  console.log(
    `== ${step.name}: ${tally.failed === 0 ? 'ok' : `${tally.failed} failed`} in ${((Date.now() - at) / 1000).toFixed(0)} s`,
  );
}
rmSync(scratch, { recursive: true, force: true });
if (told.length > 0) console.log(`\nwhat failed:\n\n${told.join('\n\n')}`);
console.log(`\nall of it took ${((Date.now() - started) / 1000).toFixed(0)} s`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
