/** IPv4 addresses and ranges, as numbers and as texts. Pure; of a text that is no address or range, the parsers return undefined. */

/** `base` has its host bits cleared; `length` is the prefix length. */
export interface CidrRange {
  readonly base: number;
  readonly length: number;
}

/** Of 0 to 2^32 - 1. No leading zeros, no shorthand. */
export function parseAddress(text: string): number | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return;
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0);
}

export const formatAddress = (address: number): string =>
  [address >>> 24, (address >>> 16) & 255, (address >>> 8) & 255, address & 255].join('.');

export const sizeOf = (length: number): number => 2 ** (32 - length);

const cleared = (address: number, length: number): number => address - (address % sizeOf(length));

/** Host bits are cleared: see `isExact`. */
export function parseCidr(text: string): CidrRange | undefined {
  const [, head = '', tail = ''] = /^([^/]+)\/(0|[1-9]\d?)$/.exec(text) ?? [];
  const address = parseAddress(head);
  const length = Number(tail);
  if (address === undefined || tail === '' || length > 32) return undefined;
  return { base: cleared(address, length), length };
}

export const formatCidr = ({ base, length }: CidrRange): string => `${formatAddress(base)}/${length}`;

/** Whether no bit beyond the prefix is set: 10.0.0.0/8, not 10.0.0.1/8. */
export function isExact(text: string): boolean {
  const range = parseCidr(text);
  return range !== undefined && formatCidr(range) === text;
}

export const containsRange = (outer: CidrRange, inner: CidrRange): boolean =>
  outer.length <= inner.length && cleared(inner.base, outer.length) === outer.base;

/** The address at the same place of another range of the same length; undefined when `address` is not in `from`. */
export function moveAddress(address: string, from: string, to: string): string | undefined {
  const [at, source, target] = [parseAddress(address), parseCidr(from), parseCidr(to)];
  if (at === undefined || !source || !target || source.length !== target.length) return undefined;
  return containsRange(source, { base: at, length: 32 }) ? formatAddress(target.base + at - source.base) : undefined;
}

/** Whether `range` lies in one of the accepted ranges; none accepted means that any is. */
export function isWithin(range: string, accepted: readonly string[]): boolean {
  const inner = parseCidr(range);
  const outer = accepted.map(parseCidr).filter((text) => text !== undefined);
  return accepted.length === 0 || (inner !== undefined && outer.some((text) => containsRange(text, inner)));
}

export const overlap = (a: CidrRange, b: CidrRange): boolean => containsRange(a, b) || containsRange(b, a);

const never = [
  ['0.0.0.0/8', 'which means "this network"'],
  ['127.0.0.0/8', 'which is loopback'],
  ['169.254.0.0/16', 'which is link-local and holds the addresses of tunnels'],
  ['224.0.0.0/4', 'which is multicast'],
  ['240.0.0.0/4', 'which is reserved'],
].map(([text = '', why = '']) => ({ text, why, range: parseCidr(text) as CidrRange }));
/** More would take in most private addresses at once. */
const shortestPrefix = 8;

/** Why a range can be neither granted nor announced, and what is accepted; undefined when it can. */
export function rangeProblem(text: string): string | undefined {
  const range = parseCidr(text);
  if (!range) return `is ${JSON.stringify(text)}: accepted is an IPv4 range such as 10.0.0.0/16`;
  if (!isExact(text)) return `is ${text}, with bits set beyond the prefix: accepted is ${formatCidr(range)}`;
  if (range.length < shortestPrefix) return `is ${text}: accepted is a prefix length of ${shortestPrefix} to 32`;
  const hit = never.find((forbidden) => overlap(forbidden.range, range));
  return hit && `is ${text}: accepted is no part of ${hit.text}, ${hit.why}`;
}

/** Of validated text; an address without length is a range of one. What is none sorts last, and nothing contains it. */
const rangeIn = (text: string): CidrRange =>
  parseCidr(text.includes('/') ? text : `${text}/32`) ?? { base: 2 ** 32, length: 32 };
const isRange = ({ base }: CidrRange): boolean => base < 2 ** 32;

/** First and last address of a validated address or range, as numbers. */
export function boundsOf(text: string): { readonly first: number; readonly last: number } {
  const { base, length } = rangeIn(text);
  return { first: base, last: base + sizeOf(length) - 1 };
}

/** Host bits cleared, always with a length: `10.0.0.7/8` is `10.0.0.0/8`, `10.0.0.7` is `10.0.0.7/32`. What is no range stays as it is. */
export function canonicalCidr(text: string): string {
  const range = rangeIn(text);
  return isRange(range) ? formatCidr(range) : text;
}

/** Of a validated address or range. */
export const firstAddress = (text: string): string => formatAddress(rangeIn(text).base);

/** Whether the address or range `inner` lies in `outer`, both validated. */
export function contains(outer: string, inner: string): boolean {
  const [a, b] = [rangeIn(outer), rangeIn(inner)];
  return isRange(b) && containsRange(a, b);
}

/** Order of validated addresses and ranges: by the first address, the wider range first. */
export function byAddress(a: string, b: string): number {
  const [x, y] = [rangeIn(a), rangeIn(b)];
  return x.base - y.base || x.length - y.length;
}

/** Sorted, without repetitions and without ranges that another one contains: what an nft set accepts. */
export function covering(texts: Iterable<string>): string[] {
  const kept: string[] = [];
  for (const text of distinctAddresses([...texts].map(canonicalCidr))) {
    const last = kept.at(-1);
    if (last === undefined || !contains(last, text)) kept.push(text);
  }
  return kept;
}

/** Sorted addresses or ranges, each once. Each is parsed once: a node may have thousands. */
export const distinctAddresses = (texts: Iterable<string>): string[] =>
  [...new Set(texts)]
    .map((text) => ({ text, range: rangeIn(text) }))
    .sort((a, b) => a.range.base - b.range.base || a.range.length - b.range.length)
    .map(({ text }) => text);
