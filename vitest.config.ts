// Four test projects: `fast` for every save, `real` for real components, `system` for what takes the whole machine, `examples` for the pages of examples/.
import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { cacheDir } from './scripts/setup/cache-dir.ts';

const rooms = ['shared', 'control', 'functions', 'infra', 'agent', 'cli', 'scripts', 'test', 'bench'];

const examples = ['test/system/examples/**/*.real.test.ts'];

/**
 * `fast` needs nothing but Node; `real` needs root, Linux and the built components of the test bed; `system` has whole clusters,
 * which mostly wait, and runs two files at a time.
 */
const system = ['test/system/{world,network,in-band,brokerless}/**/*.real.test.ts', 'test/testbed/**/*.real.test.ts'];

/** What a failure says is read where nobody can look again: pages of it are not cut to a line. */
const chaiConfig = { truncateThreshold: 20_000 };

export default defineConfig({
  // How long each file took last, by which the longest begin first, also in a fresh clone.
  cacheDir: path.join(cacheDir(), 'vite'),
  test: {
    projects: [
      {
        test: {
          name: 'fast',
          chaiConfig,
          include: rooms.map((room) => `${room}/**/*.test.ts`),
          exclude: ['**/*.real.test.ts', '**/node_modules/**'],
          // Nothing here mocks a module: what one file has loaded, the next one in its worker need not load again.
          isolate: false,
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'real',
          chaiConfig,
          include: rooms.map((room) => `${room}/**/*.real.test.ts`),
          globalSetup: ['test/harness/api-server-pool/global-setup.ts'],
          exclude: ['**/node_modules/**', ...system, ...examples],
          maxWorkers: 3,
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          name: 'examples',
          chaiConfig,
          include: examples,
        },
      },
      {
        test: {
          name: 'system',
          chaiConfig,
          include: system,
          maxWorkers: 2,
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
