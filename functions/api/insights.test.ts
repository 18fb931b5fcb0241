/**
 * The queries of docs/operate.md for CloudWatch Logs Insights, run over lines that this broker logged. Only the part of the language that they use is
 * read; a word that is not known here fails, and so does a field that no line has.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { createJsonLog } from '#functions/runtime/json-log.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';

type Line = Readonly<Record<string, unknown>>;

const page = readFileSync(path.resolve(import.meta.dirname, '../../docs/operate.md'), 'utf8');
/** In quotes of a shell, or as code in a sentence. Those of API Gateway's own log are about lines that no code of ours writes. */
const queries = [...page.matchAll(/'(filter [^']*\|[^']*)'|`(filter [^`]*\|[^`]*)`/g)]
  .map(([, a, b]) => a ?? b ?? '')
  .filter((query) => !query.includes('integration'));

const written: string[] = [];
let lines: readonly Line[] = [];
beforeAll(async () => {
  const log = createJsonLog('info', { write: (line) => void written.push(line) });
  let broken = false;
  const fixture = await createApiFixture({
    log,
    wrap: (store) => ({
      ...store,
      get: (...args: Parameters<typeof store.get>) =>
        broken && args[0].includes('/peerings')
          ? Promise.reject(new Error('the database is away'))
          : store.get(...args),
    }),
  });
  const [acme, bolt] = [await fixture.tenant('acme'), await fixture.tenant('bolt')];
  for (let count = 0; count < 3; count += 1) await fixture.call({ method: 'GET', path: '/v1/clusters', key: acme });
  await fixture.call({ method: 'GET', path: '/v1/clusters', key: bolt });
  broken = true;
  await fixture.call({ method: 'GET', path: '/v1/peerings/pe_1', key: bolt });
  lines = written.map((line) => JSON.parse(line) as Line);
});

const compare: Readonly<Record<string, (a: unknown, b: unknown) => boolean>> = {
  '=': (a, b) => a === b,
  '>=': (a, b) => typeof a === 'number' && a >= (b as number),
};
const condition = (text: string): ((line: Line) => boolean) => {
  const [, field = '', sign = '', value = ''] = /^(\w+) (>=|=) ("[^"]*"|\d+)$/.exec(text.trim()) ?? [];
  const test_ = compare[sign] ?? expect.fail(`no condition of the language: ${text}`);
  return (line) => test_(line[field], JSON.parse(value));
};

/** Rows of the last `stats`, with the group as key. */
function run(query: string): Map<string, Record<string, number>> {
  let found = lines;
  let groups = new Map<string, Record<string, number>>();
  for (const command of query.split('|').map((each) => each.trim())) {
    const [word = '', rest = ''] = [command.split(' ')[0], command.slice(command.indexOf(' ') + 1)];
    if (word === 'filter') {
      const all = rest.split(' and ').map(condition);
      found = found.filter((line) => all.every((holds) => holds(line)));
    } else if (word === 'stats') {
      const [what = '', by = ''] = rest.split(' by ');
      groups = new Map();
      for (const line of found) {
        const key = by
          .split(',')
          .map((field) => String(line[field.trim()] ?? ''))
          .join(' ');
        groups.set(key, {
          ...groups.get(key),
          ...measured(
            what,
            found.filter((one) => sameGroup(by, one, line)),
          ),
        });
      }
    } else {
      expect(command).toMatch(/^(sort \w+ (desc|asc)|limit \d+)$/);
      const [, field] = /^sort (\w+)/.exec(command) ?? [];
      if (field !== undefined) for (const row of groups.values()) expect(Object.keys(row)).toContain(field);
    }
  }
  return groups;
}

const sameGroup = (by: string, a: Line, b: Line): boolean =>
  by.split(',').every((field) => a[field.trim()] === b[field.trim()]);

function measured(what: string, of: readonly Line[]): Record<string, number> {
  const parts = [...what.matchAll(/(count|pct|sum)\(([^)]*)\)(?: as (\w+))?/g)];
  expect(parts.map(([all]) => all).join(', ')).toBe(what);
  return Object.fromEntries(
    parts.map(([, name = '', inner = '', as = name]) => {
      if (name === 'count') return [as, of.length];
      if (name === 'sum') return [as, of.filter(condition(inner)).length];
      const [field = ''] = inner.split(',');
      const values = of.map((line) => line[field.trim()]);
      for (const value of values) expect(value, field).toBeTypeOf('number');
      return [as, Math.max(...(values as number[]))];
    }),
  );
}

test('of each tenant and route they count the requests and those that failed', () => {
  const [byTenant = ''] = queries;
  const rows = run(byTenant);
  expect(rows.get('acme GET /v1/clusters')).toEqual({ requests: 3, p99: 0, failed: 0 });
  expect(rows.get('bolt GET /v1/peerings/{peering}')).toMatchObject({ requests: 1, failed: 1 });
});

test('what failed they find by route, code and tenant', () => {
  const rows = run(queries[1] ?? '');
  expect([...rows]).toEqual([['GET /v1/peerings/{peering} internal bolt', { count: 1 }]]);
});

test('the page has no other query of what the broker logs', () => {
  expect(queries).toHaveLength(2);
});
