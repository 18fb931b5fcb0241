import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  canonicalCidr,
  contains,
  containsRange,
  distinctAddresses,
  firstAddress,
  formatAddress,
  formatCidr,
  isExact,
  overlap,
  parseAddress,
  parseCidr,
  rangeProblem,
  sizeOf,
} from './cidr.ts';

const address = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const range = fc
  .tuple(address, fc.integer({ min: 0, max: 32 }))
  .map(([base, length]) => parseCidr(`${formatAddress(base)}/${length}`)!);

describe('addresses and ranges', () => {
  test('survive being written and read', () => {
    fc.assert(fc.property(address, (a) => void expect(parseAddress(formatAddress(a))).toBe(a)));
    fc.assert(fc.property(range, (r) => void expect(parseCidr(formatCidr(r))).toEqual(r)));
  });

  test('overlap exactly when one address is in both', () => {
    const holds = (r: { base: number; length: number }, a: number) => a >= r.base && a < r.base + sizeOf(r.length);
    fc.assert(
      fc.property(range, range, (a, b) => {
        expect(overlap(a, b)).toBe(holds(a, b.base) || holds(b, a.base));
        expect(containsRange(a, b)).toBe(holds(a, b.base) && holds(a, b.base + sizeOf(b.length) - 1));
      }),
    );
  });

  test.each([
    '',
    '10.0.0.0',
    '10.0.0/8',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '256.0.0.0/8',
    '10.00.0.0/8',
    'fd00::/8',
    ' 10.0.0.0/8',
  ])('%j is no range', (text) => {
    expect(parseCidr(text)).toBeUndefined();
    expect(rangeProblem(text)).toMatch(/accepted is an IPv4 range/);
  });

  test.each([
    ['10.0.0.1/8', /accepted is 10\.0\.0\.0\/8/],
    ['0.0.0.0/0', /prefix length of 8 to 32/],
    ['127.1.0.0/16', /loopback/],
    ['169.254.18.0/24', /link-local/],
    ['224.0.0.0/8', /multicast/],
  ])('%s cannot be granted or announced', (text, why) => expect(rangeProblem(text)).toMatch(why));

  test('a range of any other kind is fine', () => {
    expect(['10.0.0.0/8', '203.0.113.0/24', '192.0.2.1/32'].map(rangeProblem)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect([isExact('10.0.0.0/8'), isExact('10.0.0.0/33')]).toEqual([true, false]);
  });
});

describe('texts from validated objects', () => {
  test.each([
    ['10.0.0.7/8', '10.0.0.0/8', '10.0.0.0'],
    ['10.0.0.7', '10.0.0.7/32', '10.0.0.7'],
    ['0.0.0.0/0', '0.0.0.0/0', '0.0.0.0'],
  ])('%s is %s and begins at %s', (text, canonical, first) => {
    expect([canonicalCidr(text), firstAddress(text)]).toEqual([canonical, first]);
  });

  test('an address of another family stays as it is, sorts last and is contained by nothing', () => {
    expect(canonicalCidr('fd00::/8')).toBe('fd00::/8');
    expect(distinctAddresses(['fd00::1', '255.255.255.255', '10.0.0.2', '10.0.0.2'])).toEqual([
      '10.0.0.2',
      '255.255.255.255',
      'fd00::1',
    ]);
    expect([contains('0.0.0.0/0', 'fd00::1'), contains('fd00::/8', '10.0.0.1')]).toEqual([false, false]);
  });
});
