import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { codeOf } from '#shared/errors/app-error.ts';
import {
  addQuantities,
  addResources,
  compareQuantities,
  excessOver,
  formatQuantity,
  parseQuantity,
  parseResources,
  subtractQuantities,
  tryParseQuantity,
} from './quantity.ts';

const whole = 1_000_000_000n;

describe('quantity', () => {
  it.each<[string | number, bigint]>([
    ['0', 0n],
    ['1', whole],
    [2, 2n * whole],
    [0.5, whole / 2n],
    ['250m', whole / 4n],
    ['1n', 1n],
    ['1u', 1_000n],
    ['1k', 1_000n * whole],
    ['1Ki', 1_024n * whole],
    ['1.5Gi', 1_610_612_736n * whole],
    ['4Ei', 4n * 1_152_921_504_606_846_976n * whole],
    ['1E', 10n ** 18n * whole],
    ['1e3', 1_000n * whole],
    ['1E3', 1_000n * whole],
    ['1e-3', whole / 1_000n],
    ['.5', whole / 2n],
    ['5.', 5n * whole],
    ['+3', 3n * whole],
    ['-3', -3n * whole],
    ['0.1n', 1n],
    ['-0.1n', -1n],
    ['9007199254740993', 9_007_199_254_740_993n * whole],
  ])('reads %s', (text, nanos) => {
    expect(parseQuantity(text)).toBe(nanos);
  });

  it.each([
    '',
    ' ',
    'two',
    '1 Gi',
    '1gi',
    '1GI',
    '1K',
    '1kk',
    '--1',
    '1.2.3',
    '.',
    'Gi',
    '1e',
    '0x10',
    '1,5',
    '1Gib',
    '1e9999',
    'NaN',
    `${'9'.repeat(70)}`,
  ])('refuses %j and says what would be accepted', (text) => {
    expect(tryParseQuantity(text)).toBeUndefined();
    try {
      parseQuantity(text, 'resources.cpu');
      expect.unreachable();
    } catch (error) {
      expect(codeOf(error)).toBe('invalid_input');
      expect(String(error)).toContain('resources.cpu');
      expect(String(error)).toContain('4Gi');
    }
  });

  it.each<[string, string, string]>([
    ['1', '500m', '1500m'],
    ['500m', '500m', '1'],
    ['1Gi', '512Mi', '1536Mi'],
    ['1Gi', '0', '1Gi'],
    ['0', '0', '0'],
    ['1Gi', '1G', '2073741824'],
  ])('adds %s and %s to %s', (a, b, sum) => {
    expect(addQuantities(a, b)).toBe(sum);
  });

  it('compares across notations', () => {
    expect(compareQuantities('1Gi', '1073741824')).toBe(0);
    expect(compareQuantities('1G', '1Gi')).toBe(-1);
    expect(compareQuantities('2', '1999m')).toBe(1);
  });

  it('adds resource lists by name', () => {
    expect(addResources({ cpu: '1', pods: 3 }, { cpu: '250m', memory: '1Gi' })).toEqual({
      cpu: '1250m',
      pods: '3',
      memory: '1Gi',
    });
  });

  it('lists what is asked beyond the limits, and limits nothing that they do not name', () => {
    expect(excessOver({ cpu: '3', memory: '1Gi', 'x/gpu': 5 }, { cpu: 2, memory: '1Gi' })).toEqual([
      { resource: 'cpu', asked: '3', limit: '2' },
    ]);
  });

  it('does not take members of Object.prototype for limits or parts', () => {
    expect(excessOver({ constructor: '1' }, {})).toEqual([]);
    expect(addResources({}, { toString: '1' })).toEqual({ toString: '1' });
  });

  it('refuses negative resources, naming the field', () => {
    expect(() => parseResources({ cpu: '-1' }, 'spec.resources')).toThrow('spec.resources.cpu is -1');
  });

  const nanos = fc.bigInt(-(10n ** 30n), 10n ** 30n);
  const style = fc.constantFrom('decimal' as const, 'binary' as const);

  it('reads back exactly what it wrote, in every style', () => {
    fc.assert(
      fc.property(nanos, style, (value, how) => {
        expect(parseQuantity(formatQuantity(value, how))).toBe(value);
      }),
    );
  });

  it('adds exactly, and subtracting undoes adding', () => {
    fc.assert(
      fc.property(nanos, nanos, style, style, (a, b, howA, howB) => {
        const sum = addQuantities(formatQuantity(a, howA), formatQuantity(b, howB));
        expect(parseQuantity(sum)).toBe(a + b);
        expect(parseQuantity(subtractQuantities(sum, formatQuantity(b, howB)))).toBe(a);
      }),
    );
  });

  it('reads any text without throwing anything but invalid_input', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[-+.0-9eEKMGTPinumk]{0,12}$/)), (text) => {
        try {
          parseQuantity(text);
        } catch (error) {
          expect(codeOf(error)).toBe('invalid_input');
        }
      }),
    );
  });
});
