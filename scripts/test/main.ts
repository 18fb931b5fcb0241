/**
 * `npm test` and `npm run test:long`: the suites of one list, then one line that counts. `npm run test:long -- --resume [--minutes N] [WORDS]` takes the parts that have not passed on
 * the commit that is checked out.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { imagePackages } from '#scripts/image/agent-files.ts';
import { ensureAwsCounterparts } from '#scripts/setup/aws-counterparts.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import {
  browserPackages,
  formulaPackages,
  healthCheckPackages,
  monitoringPackages,
} from '#scripts/setup/debian-packages.ts';
import { ensureDebianTree } from '#scripts/setup/debian-tree.ts';
import { ensureNode24 } from '#scripts/setup/node24.ts';
import { setUpMachine } from '#scripts/setup/setup.ts';
import { buildWireGuardGoForArm64 } from '#scripts/setup/wireguard-go.ts';
import { buildRegistry } from '#test/harness/registry.ts';
import { rightsVariable } from '#test/testbed/asked-rights.ts';
import { buildCsiSanity, buildFluxHealth, buildHelm, buildKrew } from '#test/testbed/build.ts';
import { closingLines, nothing, type Result, resultOf, resultOfTwo, sum } from './closing.ts';
import { costLines, costsVariable, readCosts } from './costs.ts';
import { progressLine, readDurations, recordDuration } from './durations.ts';
import { chosenParts, inPieces, partsOf } from './pieces.ts';
import { background, type Execute, foreground } from './programs.ts';
import { chosen, type ListName, lists, needsMachine, type Suite } from './suites.ts';
import { runVitest, vitestProgram } from './vitest.ts';
import { secondRun } from './vitest-report.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const relative = (file: string): string => path.relative(root, file);
const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { resume: { type: 'boolean', default: false }, minutes: { type: 'string' } },
});
const [first = '', ...rest] = positionals;
const isList = (word: string): word is ListName => Object.hasOwn(lists, word);
const list = isList(first) ? first : 'test';
const words = isList(first) ? rest : positionals;

const cache = cacheDir();
const record = path.join(cache, 'test-durations.json');
const log = (line: string): void => console.log(line);
const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-test-'));
process.env[rightsVariable] ??= path.join(scratch, 'used-rights');
const costs = path.join(scratch, 'processor-time');
process.env[costsVariable] = costs;
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const started = Date.now();

let prepared: Promise<void> | undefined;
/** Every program that a test of `npm test` builds, and no more: none is built, and no part of the image fetched, while the deadline of a test runs. */
const also = {
  packages: [...browserPackages, ...monitoringPackages, ...healthCheckPackages, ...formulaPackages],
  programs: {
    helm: buildHelm,
    fluxHealth: buildFluxHealth,
    registry: buildRegistry,
    krew: buildKrew,
    csiSanity: buildCsiSanity,
    wireGuardGoForArm64: buildWireGuardGoForArm64,
  },
};

/** Packages and built components, once, and not before the suites that need none of them: those fail sooner. */
function prepare(): Promise<void> {
  prepared ??= (async () => {
    await setUpMachine({ log, also });
    for (const architecture of ['amd64', 'arm64'] as const) {
      await ensureNode24({ root, cache, log, architecture });
      await ensureDebianTree({ architecture, packages: imagePackages, cache, log });
    }
    await ensureAwsCounterparts({ root, cache, log });
  })();
  return prepared;
}

const nodeOf = async (node: '24' | 'this'): Promise<string> =>
  node === 'this' ? process.execPath : ensureNode24({ root, cache, log });

/**
 * How the suites beside the first one of a row run. Tests have deadlines, so they get as much as it gets; checks get a share of what those leave. At 10, a
 * check of 40 CPU seconds took 1,537 s, longer than its row.
 */
const nicenessOf = { tests: 0, check: 4 } as const satisfies Record<Suite['kind'], number>;
const everyMs = 60_000;
/** Files that are named with the processor time that they took. */
const dearest = 25;

interface Ended {
  readonly name: string;
  readonly seconds: number;
  readonly result: Result;
  /** Runs what failed once more, with the machine to itself; that result counts. */
  readonly again?: (execute: Execute) => Promise<Result>;
}

async function take(suite: Suite, execute: Execute): Promise<Ended> {
  const at = Date.now();
  const ended = suite.kind === 'check' ? await check(suite, execute) : await tests(suite, execute);
  const seconds = (Date.now() - at) / 1000;
  if (ended.result.failed === 0) recordDuration(record, suite.name, seconds);
  return { name: suite.name, seconds, ...ended };
}

type Of<K extends Suite['kind']> = Extract<Suite, { kind: K }>;
type Taken = Pick<Ended, 'result' | 'again'>;

async function check({ name, argv }: Of<'check'>, execute: Execute): Promise<Taken> {
  const { code } = await execute([process.execPath, ...argv]);
  return { result: code === 0 ? { ...nothing, passed: 1 } : { ...nothing, failed: 1, told: [name] } };
}

async function tests({ name, node, projects, paths, again }: Of<'tests'>, execute: Execute): Promise<Taken> {
  const place = { root, scratch, node: await nodeOf(node) };
  const args = projects.flatMap((project) => ['--project', project]);
  const outcome = await runVitest(place, execute, name, [...args, ...paths]);
  const result = resultOf(outcome, relative);
  const files = [...new Set(outcome.failures.map(({ file }) => relative(file)))];
  if (!again || files.length === 0) return { result };
  // The runner itself ended: no file is named, and what its tests would have said is not known.
  const isWhole = files.includes('');
  return {
    result,
    async again(alone) {
      console.log(`\n== ${name}, once more and alone: ${isWhole ? 'all of it' : files.join(', ')}`);
      const which = isWhole ? paths : ['--no-file-parallelism', ...files];
      const second = await runVitest(place, alone, `${name} again`, [...args, ...which]);
      return resultOfTwo(outcome, isWhole ? second : secondRun(outcome, second), relative);
    },
  };
}

const tell = (name: string, { failed }: Result, seconds: number): void =>
  console.log(`== ${name}: ${failed === 0 ? 'ok' : `${failed} failed`} in ${seconds.toFixed(0)} s`);

/** The first in the foreground; the others one after the other beside it, and told when it has ended, so that two outputs never mix. */
async function takeRow([suite, ...others]: readonly [Suite, ...Suite[]], after: readonly string[]): Promise<Ended[]> {
  const at = Date.now();
  const progress = (): void => {
    const elapsed = (Date.now() - at) / 1000;
    console.log(progressLine({ suite: suite.name, elapsed, after }, readDurations(record)));
  };
  console.log(`\n== ${suite.name}`);
  progress();
  const timer = setInterval(progress, everyMs);
  const before = take(suite, foreground({ cwd: root })).finally(() => clearInterval(timer));
  const beside: { readonly ended: Ended; readonly logFile: string }[] = [];
  for (const [i, other] of others.entries()) {
    const logFile = path.join(scratch, `beside-${i}.log`);
    beside.push({
      logFile,
      ended: await take(other, background({ cwd: root, logFile, niceness: nicenessOf[other.kind] })),
    });
  }
  const shown = await before;
  tell(shown.name, shown.result, shown.seconds);
  for (const { ended, logFile } of beside) {
    console.log(`\n== ${ended.name}, beside ${suite.name}\n${readFileSync(logFile, 'utf8')}`);
    tell(ended.name, ended.result, ended.seconds);
  }
  return [shown, ...beside.map(({ ended }) => ended)];
}

async function count({ name, result, again }: Ended): Promise<Result> {
  if (again === undefined) return result;
  const at = Date.now();
  const counted = await again(foreground({ cwd: root }));
  tell(name, counted, (Date.now() - at) / 1000);
  return counted;
}

async function wholeRun(): Promise<boolean> {
  const rows = chosen(lists[list], words);
  let total = nothing;
  for (const [i, row] of rows.entries()) {
    const after = rows.slice(i + 1).map(([suite]) => suite.name);
    if (row.some(needsMachine)) await prepare();
    for (const ended of await takeRow(row, after)) total = sum(total, await count(ended));
  }
  for (const line of costLines(readCosts(costs), dearest, relative)) console.log(line);
  for (const line of closingLines(total, (Date.now() - started) / 1000)) console.log(line);
  return total.failed === 0 && total.passed > 0;
}

const git = (...args: readonly string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();

/** As vitest itself lists them for these projects and folders. */
function filesOf(suite: Suite): readonly string[] {
  if (suite.kind === 'check') return [];
  const projects = suite.projects.flatMap((project) => ['--project', project]);
  const argv = [vitestProgram(root), 'list', '--filesOnly', '--json', ...projects, ...suite.paths];
  const listed = JSON.parse(execFileSync(process.execPath, argv, { cwd: root, encoding: 'utf8' })) as {
    file: string;
  }[];
  return listed.map(({ file }) => relative(file)).sort();
}

/** True when all parts have passed on this commit, in this run or in earlier ones. */
async function resumedRun(minutes: number | undefined): Promise<boolean> {
  const commit = git('rev-parse', 'HEAD');
  const changes = (): readonly string[] => [
    ...git('status', '--porcelain').split('\n').filter(Boolean),
    ...[git('rev-parse', 'HEAD')].filter((now) => now !== commit).map((now) => `commit ${now} is checked out`),
  ];
  const changed = changes();
  if (changed.length > 0) {
    console.error(
      `--resume records what passed by commit, and ${changed.length} files differ from it: commit them first\n${changed.join('\n')}`,
    );
    return false;
  }
  const all = partsOf(lists[list], filesOf);
  const { total, summary, isWhole } = await inPieces({
    all,
    chosen: chosenParts(all, words),
    commit,
    file: path.join(cache, 'test-passes.json'),
    minutes,
    changed: changes,
    async take(part) {
      if (needsMachine(part)) await prepare();
      const [ended] = (await takeRow([part], [])) as [Ended];
      return { seconds: ended.seconds, result: await count(ended) };
    },
    now: () => Date.now(),
  });
  const lines = closingLines(total, (Date.now() - started) / 1000);
  for (const line of [...lines.slice(0, -1), summary, ...lines.slice(-1)]) console.log(line);
  return isWhole && total.failed === 0;
}

/** What is wrong with the flags; undefined: nothing. */
function misuse(): string | undefined {
  if (flags.minutes !== undefined && !/^[1-9]\d*$/.test(flags.minutes))
    return `--minutes is ${flags.minutes}, accepted is a whole number above 0`;
  if (flags.minutes !== undefined && !flags.resume) return '--minutes goes with --resume only';
  // Its last check reads what the suites before it left behind.
  return flags.resume && list === 'test' ? '--resume goes with `npm run test:long` only' : undefined;
}

const wrong = misuse();
if (wrong !== undefined) console.error(wrong);
const minutes = flags.minutes === undefined ? undefined : Number(flags.minutes);
const isGood = wrong === undefined && (flags.resume ? await resumedRun(minutes) : await wholeRun());
process.exitCode = isGood ? 0 : wrong === undefined ? 1 : 2;
