// Seven test projects: `fast` for every save, `thorough` for generated cases in memory, `real` for real components, `network` for networks of namespaces, `system` for whole clusters, `long` for
// second copies of a proof and long waits, `examples` for the pages of examples/.
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { cacheDir } from './scripts/setup/cache-dir.ts';
import { LongestFirst } from './scripts/test/longest-first.ts';
import { moduleCacheKey } from './scripts/test/module-cache-key.ts';
import { allCases, filesWithCases } from './test/harness/cases.ts';

const rooms = [
  'shared',
  'kube',
  'control',
  'functions',
  'infra',
  'agent',
  'cli',
  'console',
  'scripts',
  'test',
  'bench',
];

/**
 * Generated cases and histories in memory, each of which takes seconds of processor time, and what asks the cloud's stacks, whose synthesis takes as
 * long once in each worker. Part of `npm test`; `npm run test:fast` leaves them out.
 */
const thorough = [
  'agent/broker/trust/lies.test.ts',
  'agent/network/link/tunnel/two-sides.test.ts',
  'agent/peering/renewal/recovery.test.ts',
  'agent/reflection/model.test.ts',
  'bench/cost/cost.test.ts',
  'control/cross-tenant-isolation.test.ts',
  'control/isolation.test.ts',
  'control/limits/capacity.test.ts',
  'control/peerings/coordinator/coordinator.test.ts',
  'control/peerings/cross-tenant-histories.test.ts',
  'control/peerings/cross-tenant/{copies,peer-names}.test.ts',
  'control/peerings/histories.test.ts',
  'control/store/due.test.ts',
  'functions/api/deletion.test.ts',
  'functions/api/isolation.test.ts',
  'functions/api/limits.test.ts',
  'functions/api/repeated.test.ts',
  'infra/{alarms,console,production,release,request-widgets,rights,stacks}.test.ts',
  'test/orderings/**/*.test.ts',
];

/** Part of `npm run test:long` only. */
const long = '**/*.long.test.ts';
const examples = ['test/system/examples/**/*.real.test.ts'];

/** `fast` and `thorough` need nothing but Node; the others need root, Linux and the built components of the test bed. */
const system = ['test/system/whole-clusters/*.real.test.ts'];
/** Wait most of their time, for packets and for timers of kernels: 330 s with 90 s of the processors. */
const network = ['test/system/network/**/*.real.test.ts'];

/**
 * Files at a time. `npm test` runs `real` beside one of the others. Whole clusters have deadlines of seconds, which four files of them beside four others
 * missed: at a load of 74, on two processors, a link took 100 s.
 */
const workers = { real: 3, network: 1, system: 2 };

/** A pool of API servers for all files of a run. */
const globalSetup = ['test/harness/api-server-pool/global-setup.ts'];

/** What a failure says is read where nobody can look again: pages of it are not cut to a line. */
const chaiConfig = { truncateThreshold: 20_000 };

const setupFiles = ['test/harness/fail-on-warnings.ts'];
const onComponents = [...setupFiles, 'test/harness/processor-time.ts'];
/**
 * Of projects whose workers keep their process: what one file has loaded and compiled serves the next. 116 files took 429 s of the processors for
 * Node, and 535 s with a process for each file.
 */
const inSharedProcess = { isolate: false, setupFiles: [...onComponents, 'test/harness/nothing-left.ts'] };

/**
 * V8 optimizes a function after it has run so much bytecode; by default a seventh of this, which is too soon for code that runs a few times: 2,722 unit tests
 * took 97 and 83 s of the processors instead of 106 and 94. Node 24 has no such option.
 */
const optimizeLate = process.versions.node.startsWith('20.') ? ['--interrupt-budget=1000000'] : [];
/** Tests make much that dies young: with more room for it, 1,955 unit tests take 8 % less processor time (36.7 and 40.3 s, 32.9 and 38.1 with it). */
const execArgv = ['--max-semi-space-size=64', ...optimizeLate];

const unit = rooms.map((room) => `${room}/**/*.test.ts`);
const notUnit = ['**/*.real.test.ts', long, '**/node_modules/**'];

const inMemory = {
  maxWorkers: Math.max(2, availableParallelism() - 1),
  execArgv,
  chaiConfig,
  setupFiles: [...setupFiles, 'test/harness/fail-on-leftovers.ts'],
  // Nothing here mocks a module: what one file has loaded, the next one in its worker need not load again.
  isolate: false,
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

export default defineConfig({
  // How long each file took last, by which the longest begin first, also in a fresh clone.
  cacheDir: path.join(cacheDir(), 'vite'),
  test: {
    sequence: { sequencer: LongestFirst },
    // Modules as vite has transformed them, by their text and moduleCacheKey. Of each checkout: one with other packages clears the folder, also under a run.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.build/test-modules' },
    projects: [
      { test: { ...inMemory, name: 'fast', include: unit, exclude: [...notUnit, ...thorough] } },
      { test: { ...inMemory, name: 'thorough', include: thorough, exclude: notUnit } },
      {
        test: {
          name: 'real',
          execArgv,
          chaiConfig,
          ...inSharedProcess,
          include: rooms.map((room) => `${room}/**/*.real.test.ts`),
          globalSetup,
          exclude: ['**/node_modules/**', ...system, ...network, ...examples],
          maxWorkers: workers.real,
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          name: 'network',
          execArgv,
          chaiConfig,
          ...inSharedProcess,
          include: network,
          maxWorkers: workers.network,
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          name: 'long',
          chaiConfig,
          setupFiles: onComponents,
          include: [long, ...filesWithCases],
          env: allCases,
          globalSetup,
          // Tests make copies of the tree in .build.
          exclude: ['**/node_modules/**', '.build/**'],
          maxWorkers: 2,
          // All cases of a generated test, also beside other work.
          testTimeout: 1_800_000,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          name: 'examples',
          chaiConfig,
          setupFiles: onComponents,
          include: examples,
        },
      },
      {
        test: {
          name: 'system',
          execArgv,
          chaiConfig,
          setupFiles: onComponents,
          include: system,
          maxWorkers: workers.system,
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
    ].map((project) => ({ plugins: [moduleCacheKey(import.meta.dirname)], ...project })),
  },
});
