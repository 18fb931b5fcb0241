/** Kubernetes quantities (`250m`, `2Gi`, `1e3`), exact: a quantity is a whole number of nano-units, however large. */

import { AppError } from '#shared/errors/app-error.ts';
import { ownMember } from './own-member.ts';

/** A quantity in nano-units (10^-9): the finest that Kubernetes keeps. */
export type Nanos = bigint;
/** As objects hold it: users also write `cpu: 2` as a number. */
export type QuantityText = string | number;
export type Resources = Readonly<Record<string, QuantityText>>;

const nano = 1_000_000_000n;
const grammar =
  /^([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])|[eE]([+-]?[0-9]{1,3}))?$/;
const binary: Readonly<Record<string, bigint>> = {
  Ki: 1n << 10n,
  Mi: 1n << 20n,
  Gi: 1n << 30n,
  Ti: 1n << 40n,
  Pi: 1n << 50n,
  Ei: 1n << 60n,
};
const decimalExponents: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const longestText = 64;

/** Undefined when `text` is no quantity. A part smaller than a nano-unit is rounded away from zero, as Kubernetes does. */
export function tryParseQuantity(text: QuantityText): Nanos | undefined {
  const written = String(text);
  if (written.length > longestText) return undefined;
  const match = grammar.exec(written);
  if (!match) return undefined;
  const [, sign, whole = '0', fraction = match[4] ?? '', , suffix = '', exponentText] = match;
  const multiplier = binary[suffix];
  const exponent = exponentText === undefined ? (decimalExponents[suffix] ?? 0) : Number(exponentText);
  let numerator = BigInt(whole + fraction) * nano * (multiplier ?? 1n);
  let denominator = 10n ** BigInt(fraction.length);
  if (multiplier === undefined && exponent > 0) numerator *= 10n ** BigInt(exponent);
  if (multiplier === undefined && exponent < 0) denominator *= 10n ** BigInt(-exponent);
  const rounded = (numerator + denominator - 1n) / denominator;
  return sign === '-' ? -rounded : rounded;
}

/** `field` goes into the message of the refusal. */
export function parseQuantity(text: QuantityText, field = 'quantity'): Nanos {
  const parsed = tryParseQuantity(text);
  if (parsed !== undefined) return parsed;
  throw new AppError(
    'invalid_input',
    `${field} is ${JSON.stringify(text)}, which is no Kubernetes quantity: write a number with an optional suffix, for example 2, 500m or 4Gi`,
    { detail: { field, value: text, accepted: 'Kubernetes quantity' } },
  );
}

export type QuantityStyle = 'decimal' | 'binary';

const decimalSteps: readonly (readonly [string, bigint])[] = [
  ['E', nano * 10n ** 18n],
  ['P', nano * 10n ** 15n],
  ['T', nano * 10n ** 12n],
  ['G', nano * 10n ** 9n],
  ['M', nano * 10n ** 6n],
  ['k', nano * 10n ** 3n],
  ['', nano],
  ['m', 1_000_000n],
  ['u', 1_000n],
  ['n', 1n],
];
const binarySteps: readonly (readonly [string, bigint])[] = Object.entries(binary)
  .map(([suffix, factor]) => [suffix, factor * nano] as const)
  .reverse();

/** The canonical text: the largest suffix that leaves a whole number. Binary falls back to decimal where it would not be exact. */
export function formatQuantity(value: Nanos, style: QuantityStyle = 'decimal'): string {
  if (value === 0n) return '0';
  const isWhole = ([, step]: readonly [string, bigint]): boolean => value % step === 0n;
  const steps = style === 'binary' && value % nano === 0n ? [...binarySteps, ['', nano] as const] : decimalSteps;
  const [suffix, step] = steps.find(isWhole) ?? ['n', 1n];
  return `${value / step}${suffix}`;
}

/** How a quantity was written, so that sums come out the way people wrote the parts. */
const styleOf = (text: QuantityText): QuantityStyle => (String(text).endsWith('i') ? 'binary' : 'decimal');

export const compareQuantities = (a: QuantityText, b: QuantityText): -1 | 0 | 1 => {
  const left = parseQuantity(a);
  const right = parseQuantity(b);
  return left < right ? -1 : left > right ? 1 : 0;
};

/** The style is binary when both parts are, or the only part that is not zero is. */
export function addQuantities(a: QuantityText, b: QuantityText): string {
  return combine(a, b, (left, right) => left + right);
}

export function subtractQuantities(a: QuantityText, b: QuantityText): string {
  return combine(a, b, (left, right) => left - right);
}

function combine(a: QuantityText, b: QuantityText, operation: (left: Nanos, right: Nanos) => Nanos): string {
  const left = parseQuantity(a);
  const right = parseQuantity(b);
  const styles = [left === 0n ? undefined : styleOf(a), right === 0n ? undefined : styleOf(b)];
  const isBinary = styles.includes('binary') && !styles.includes('decimal');
  return formatQuantity(operation(left, right), isBinary ? 'binary' : 'decimal');
}

/** Every value as text, unparsed: what the JSON of `v1.ResourceList` holds. */
export const resourceTexts = (resources: Resources = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(resources).map(([name, value]) => [name, String(value)]));

/** Sums by resource name; a name that only one side has keeps its value. */
export function addResources(a: Resources, b: Resources): Record<string, string> {
  const sum = resourceTexts(a);
  for (const [name, value] of Object.entries(b)) {
    const before = ownMember(sum, name);
    sum[name] = before === undefined ? String(value) : addQuantities(before, value);
  }
  return sum;
}

export interface Excess {
  readonly resource: string;
  readonly asked: string;
  readonly limit: string;
}

/** What of `asked` is more than `limits` allow. A resource that `limits` do not name is not limited. */
export function excessOver(requested: Resources, limits: Resources): readonly Excess[] {
  return Object.entries(requested)
    .filter(([name, value]) => {
      const limit = ownMember(limits, name);
      return limit !== undefined && compareQuantities(value, limit) > 0;
    })
    .map(([resource, value]) => ({ resource, asked: String(value), limit: String(limits[resource]) }));
}

/** Refuses, naming the field, anything that is no quantity or is negative. Returns the values as text. */
export function parseResources(resources: Resources, field = 'resources'): Record<string, string> {
  for (const [name, value] of Object.entries(resources)) {
    if (parseQuantity(value, `${field}.${name}`) < 0n)
      throw new AppError('invalid_input', `${field}.${name} is ${value}: it must not be negative`, {
        detail: { field: `${field}.${name}`, value, accepted: 'quantity of at least 0' },
      });
  }
  return resourceTexts(resources);
}
