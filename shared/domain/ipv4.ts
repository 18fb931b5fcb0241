/** IPv4 ranges as numbers: containment, order, first address. Texts come from validated objects. */

interface Range {
  readonly first: number;
  readonly last: number;
}

export const addressNumber = (address: string): number =>
  address.split('.').reduce((value, octet) => value * 256 + Number(octet), 0);

export const addressText = (value: number): string =>
  [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');

/** An address without length is a range of one. */
export function rangeOf(cidr: string): Range {
  const [address = '', length = '32'] = cidr.split('/');
  const size = 2 ** (32 - Number(length));
  const first = Math.floor(addressNumber(address) / size) * size;
  return { first, last: first + size - 1 };
}

/** Host bits cleared, always with a length: `10.0.0.7/8` is `10.0.0.0/8`, `10.0.0.7` is `10.0.0.7/32`. */
export const canonicalCidr = (cidr: string): string =>
  `${addressText(rangeOf(cidr).first)}/${cidr.split('/')[1] ?? '32'}`;

export const firstAddress = (cidr: string): string => addressText(rangeOf(cidr).first);

export function contains(outer: string, inner: string): boolean {
  const [a, b] = [rangeOf(outer), rangeOf(inner)];
  return a.first <= b.first && b.last <= a.last;
}

export function byAddress(a: string, b: string): number {
  const [x, y] = [rangeOf(a), rangeOf(b)];
  return x.first - y.first || y.last - x.last;
}

/** Sorted, without repetitions and without ranges that another one contains: what an nft set accepts. */
export function covering(cidrs: Iterable<string>): string[] {
  const kept: string[] = [];
  for (const cidr of [...new Set([...cidrs].map(canonicalCidr))].sort(byAddress)) {
    const last = kept.at(-1);
    if (last === undefined || !contains(last, cidr)) kept.push(cidr);
  }
  return kept;
}

/** Sorted addresses, each once. */
export const distinctAddresses = (addresses: Iterable<string>): string[] => [...new Set(addresses)].sort(byAddress);
