/** `npm test`: every check of the repository in the order in which a failure is cheapest, then one line that counts. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ensureAwsCounterparts } from '#scripts/setup/aws-counterparts.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureNode24 } from '#scripts/setup/node24.ts';
import { setUpMachine } from '#scripts/setup/setup.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-test-'));

interface Tally {
  passed: number;
  failed: number;
}
interface Step {
  readonly name: string;
  readonly run: () => Promise<Tally>;
}

/** One passed or failed check by exit code. */
const check = (name: string, ...argv: [string, ...string[]]): Step => ({
  name,
  run: async () => ((await execute(argv)) === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 }),
});

/** Counts single tests from vitest's own report; a runner that dies without one is a failure. */
const tests = (name: string, node: string, ...args: string[]): Step => ({
  name,
  run: async () => {
    const report = path.join(scratch, `${name.replaceAll(/\W+/g, '-')}.json`);
    const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
    const code = await execute([
      node,
      vitest,
      'run',
      ...args,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
    ]);
    if (!existsSync(report)) return { passed: 0, failed: 1 };
    const counted = JSON.parse(readFileSync(report, 'utf8')) as {
      numPassedTests: number;
      numFailedTests: number;
      success: boolean;
    };
    const broken = code !== 0 || !counted.success;
    return {
      passed: counted.numPassedTests,
      failed: broken ? Math.max(1, counted.numFailedTests) : counted.numFailedTests,
    };
  },
});

const tool = (file: string) => path.join(root, 'node_modules', file);

const steps = (node24: string): Step[] => [
  check('lint', process.execPath, tool('@biomejs/biome/bin/biome'), 'ci', '.'),
  check('types', process.execPath, tool('typescript/bin/tsc'), '-b'),
  check('generated files are current', process.execPath, 'scripts/run.mjs', 'scripts/gen/main.ts', '--check'),
  check('cloud templates', process.execPath, 'scripts/run.mjs', 'scripts/templates/main.ts'),
  tests('unit and contract tests', process.execPath, '--project', 'fast'),
  tests('tests on real components', process.execPath, '--project', 'real'),
  tests('whole clusters', process.execPath, '--project', 'system'),
  // What builds, deploys and tests runs on Node 20 only; what users run, on both.
  tests('unit tests on Node 24', node24, '--project', 'fast', 'agent/', 'shared/', 'control/', 'functions/', 'cli/'),
  tests('API server tests on Node 24', node24, '--project', 'real', 'agent/kube/', 'test/contract/crds'),
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
  console.log(
    `== ${step.name}: ${tally.failed === 0 ? 'ok' : `${tally.failed} failed`} in ${((Date.now() - at) / 1000).toFixed(0)} s`,
  );
}
rmSync(scratch, { recursive: true, force: true });
console.log(`\nall of it took ${((Date.now() - started) / 1000).toFixed(0)} s`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
