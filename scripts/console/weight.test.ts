/** What a reader downloads of the console, and that it is all of it. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const maxCompressedBytes = 150 * 1024;

test('the console weighs at most 150 KB compressed and names no other site', () => {
  const build = path.join(repositoryRoot, 'scripts', 'console', 'build.mjs');
  const folder = execFileSync(process.execPath, [build], { encoding: 'utf8' }).trim();
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name)));
  const bytes = files.reduce((sum, content) => sum + gzipSync(content).length, 0);
  expect(files.length).toBeGreaterThanOrEqual(3);
  expect(bytes).toBeLessThan(maxCompressedBytes);
  const sites = files.flatMap(
    (content) => content.toString().match(/(?:src|href|url)\W{1,3}https?:\/\/[^"'`\s)]+/g) ?? [],
  );
  expect(sites).toEqual([]);
});
