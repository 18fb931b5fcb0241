import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { moduleCacheKey } from './module-cache-key.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), 'isthmus-key-'));
  mkdirSync(path.join(root, 'console'));
  mkdirSync(path.join(root, 'node_modules'));
});
afterEach(() => rmSync(root, { recursive: true }));

function keyNow(): unknown {
  let generator: (() => unknown) | undefined;
  const { configureVitest } = moduleCacheKey(root) as {
    configureVitest(context: { experimental_defineCacheKeyGenerator(given: () => unknown): void }): void;
  };
  configureVitest({ experimental_defineCacheKeyGenerator: (given) => (generator = given) });
  return generator?.();
}

test.each([
  'package.json',
  'node_modules/.package-lock.json',
  'vitest.config.ts',
  'tsconfig.base.json',
  'console/tsconfig.json',
])('a module that was transformed under another %s is transformed again', (file) => {
  const keys = ['{}', '{"a":1}', '{}'].map((text) => {
    writeFileSync(path.join(root, file), text);
    return keyNow();
  });
  expect(keys[0]).toMatch(/^[0-9a-f]{64}$/);
  expect(keys[1]).not.toBe(keys[0]);
  expect(keys[2]).toBe(keys[0]);
});
