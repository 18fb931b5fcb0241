/** What package.json says of Node, every package in the lock file says too: `npm ci` has nothing to warn of. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

type Version = readonly [number, number, number];

const read = <T>(file: string): T => JSON.parse(readFileSync(path.join(repositoryRoot, file), 'utf8')) as T;
const less = (a: Version, b: Version): boolean =>
  a[0] !== b[0] ? a[0] < b[0] : a[1] !== b[1] ? a[1] < b[1] : a[2] < b[2];

/** One of `>=1.2`, `<3`, `^1.2.3`, `~1.2`, `1.x`, `*`; undefined for what is none of them. */
function comparatorAccepts(text: string, version: Version): boolean | undefined {
  if (text === '*' || text === '') return true;
  const [, operator = '', major, minor, patch] =
    /^(>=|<=|>|<|\^|~|=)?v?(\d+)(?:\.(\d+|x|\*))?(?:\.(\d+|x|\*))?$/.exec(text) ?? [];
  if (major === undefined) return undefined;
  const part = (one: string | undefined): number => (one === undefined || /[x*]/.test(one) ? 0 : Number(one));
  const at: Version = [Number(major), part(minor), part(patch)];
  const open = (one: string | undefined): boolean => one === undefined || /[x*]/.test(one);
  const next: Version = open(minor) || operator === '^' ? [at[0] + 1, 0, 0] : [at[0], at[1] + 1, 0];
  const exact = !open(patch) && (operator === '' || operator === '=');
  switch (operator) {
    case '>=':
      return !less(version, at);
    case '<':
      return less(version, at);
    case '>':
      return less(at, version);
    case '<=':
      return !less(at, version);
    default:
      return exact ? !less(version, at) && !less(at, version) : !less(version, at) && less(version, next);
  }
}

/** Alternatives by `||`, in each all of its comparators. */
function accepts(range: string, version: Version): boolean {
  return range.split('||').some((alternative) => {
    const comparators = alternative
      .trim()
      .replaceAll(/(>=|<=|>|<|\^|~)\s+/g, '$1')
      .split(/\s+/);
    return comparators.every((one) => {
      const output = comparatorAccepts(one, version);
      if (output === undefined) throw new Error(`no range of versions: ${JSON.stringify(range)}`);
      return output;
    });
  });
}

test.each([
  { range: '>=20', version: [20, 19, 0], ok: true },
  { range: '>=22', version: [20, 19, 0], ok: false },
  { range: '^20.19.0 || ^22.12.0 || >=24.0.0', version: [24, 0, 0], ok: true },
  { range: '^20.19.0 || ^22.12.0', version: [24, 0, 0], ok: false },
  { range: '>= 14.15.0', version: [20, 19, 0], ok: true },
  { range: '18.x || 20.x', version: [20, 19, 0], ok: true },
  { range: '>=18 <20', version: [20, 19, 0], ok: false },
] as const)('$range accepts $version: $ok', ({ range, version, ok }) => {
  expect(accepts(range, version)).toBe(ok);
});

describe('npm ci warns of no engine', () => {
  const { engines } = read<{ engines: { node: string } }>('package.json');
  const { packages } = read<{ packages: Record<string, { engines?: { node?: string } }> }>('package-lock.json');
  const oldest = /^>=(\d+)\.(\d+)$/.exec(engines.node)?.slice(1).map(Number) as unknown as [number, number];

  test.each([
    { node: 'the oldest Node that we accept', version: [oldest[0], oldest[1], 0] as const },
    { node: 'Node 24', version: [24, 0, 0] as const },
  ])('on $node', ({ version }) => {
    const asking = Object.entries(packages).filter(([, { engines: requested }]) => requested?.node !== undefined);
    expect(asking.length).toBeGreaterThan(50);
    const refusing = asking.filter(([, { engines: requested }]) => !accepts(requested?.node ?? '*', version));
    expect(refusing.map(([name, { engines: requested }]) => `${name} wants Node ${requested?.node}`)).toEqual([]);
  });
});
