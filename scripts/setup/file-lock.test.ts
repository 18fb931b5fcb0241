import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withFileLock } from './file-lock.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-lock-'));
});
afterAll(async () => await rm(dir, { recursive: true }));

test('lets in one at a time, and lets the next in after a failure', async () => {
  const file = path.join(dir, 'deep', 'lock');
  let inside = 0;
  const visit = (fail: boolean): Promise<number> =>
    withFileLock(file, async () => {
      inside += 1;
      const seen = inside;
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      if (fail) throw new Error('on purpose');
      return seen;
    });
  const results = await Promise.allSettled([visit(false), visit(true), visit(false), visit(false)]);
  expect(results.map((result) => (result.status === 'fulfilled' ? result.value : 'failed'))).toEqual([
    1,
    'failed',
    1,
    1,
  ]);
});
