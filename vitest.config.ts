// Two test projects: `fast` for every save, `real` for whatever needs this machine's kernel.
import { defineConfig } from 'vitest/config';

const rooms = ['shared', 'control', 'functions', 'infra', 'agent', 'cli', 'scripts', 'test', 'bench'];

/** `fast` needs nothing but Node; `real` needs root, Linux and the built components of the test bed. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'fast',
          include: rooms.map((room) => `${room}/**/*.test.ts`),
          exclude: ['**/*.real.test.ts', '**/node_modules/**'],
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'real',
          include: rooms.map((room) => `${room}/**/*.real.test.ts`),
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
