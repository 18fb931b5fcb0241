/** Commands name operations of the generated client: a path that is typed by hand is one that the API may change under. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

test('no command writes a path of the REST API', () => {
  const files = readdirSync('cli', { recursive: true, encoding: 'utf8' }).filter((file) =>
    /(?<!\.test)\.ts$/.test(file),
  );
  const found = files.filter((file) => /['"`]\/v1\//.test(readFileSync(path.join('cli', file), 'utf8')));
  expect(files.length).toBeGreaterThan(50);
  expect(found).toEqual([]);
});
