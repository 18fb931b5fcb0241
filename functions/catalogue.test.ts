import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { cloudFunctions } from './catalogue.ts';
import { httpFunctions } from './routes.ts';
import { patterns } from './runtime/bus-patterns.ts';

const root = path.resolve(import.meta.dirname, '..');

/** Files that are functions: they export what the platform calls. */
const handlerFiles = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', 'functions/*.ts'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => /^functions\/(api|channel|events|schedule)\//.test(file) && !file.endsWith('.test.ts'))
  .filter((file) => /^export const handler\b/m.test(read(file)));

function read(file: string): string {
  try {
    return readFileSync(path.join(root, file), 'utf8');
  } catch {
    return ''; // listed by git, deleted in the work tree
  }
}

describe('the catalogue', () => {
  test('holds every function file once, and no other', () => {
    expect(cloudFunctions.map(({ file }) => file).sort()).toEqual([...handlerFiles].sort());
  });

  test('names functions shortly enough for a stage in front of them', () => {
    const names = cloudFunctions.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => !/^[a-z][a-z0-9-]{2,39}$/.test(name))).toEqual([]);
  });

  test('routes each HTTP function as it says itself; after a change, run `npm run gen`', () => {
    const routed = cloudFunctions.flatMap(({ trigger }) =>
      trigger.kind === 'http' ? [`${trigger.method} ${trigger.path}`] : [],
    );
    expect(routed.sort()).toEqual(httpFunctions.map(({ route }) => `${route.method} ${route.path}`).sort());
  });

  test('uses every pattern for one function', () => {
    const used = cloudFunctions.flatMap(({ trigger }) => (trigger.kind === 'event' ? [trigger.pattern] : []));
    expect(used.map((p) => JSON.stringify(p)).sort()).toEqual(
      Object.values(patterns)
        .map((p) => JSON.stringify(p))
        .sort(),
    );
  });

  test('gives writing only with reading, the stream and the bus to the dispatcher alone, and nothing to functions without state', () => {
    for (const { name, access } of cloudFunctions) {
      if (access.includes('table:write')) expect(access).toContain('table:read');
      expect([name, access.includes('bus:publish')]).toEqual([name, name === 'events-dispatch']);
      expect([name, access.includes('stream:read')]).toEqual([name, name === 'events-dispatch']);
    }
    const without = cloudFunctions.filter(({ access }) => access.length === 0).map(({ name }) => name);
    expect(without.sort()).toEqual(['api-health', 'api-no-route', 'api-openapi-document']);
  });

  test('ends requests before the gateway gives up on them', () => {
    for (const { trigger, timeoutSeconds } of cloudFunctions) {
      if (trigger.kind === 'http' || trigger.kind === 'socket') expect(timeoutSeconds).toBeLessThan(30);
    }
  });
});
