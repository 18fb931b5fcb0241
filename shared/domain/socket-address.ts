/** An IPv4 address that a socket of both families shows as an IPv6 one (RFC 4291, 2.5.5.2), as everybody writes it; any other as it is. */
export const unmapped = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');

/** The eight groups of an IPv6 address, also of one with a zone or with an IPv4 address at its end. Undefined: it is none. */
function groupsOf(address: string): readonly number[] | undefined {
  const [text = ''] = address.split('%');
  const [head, tail, more] = text.split('::').map((part) => (part === '' ? [] : part.split(':').flatMap(groupOf)));
  if (head === undefined || more !== undefined || !text.includes(':')) return undefined;
  const absent = 8 - head.length - (tail?.length ?? 0);
  if (tail === undefined ? absent !== 0 : absent < 1) return undefined;
  const groups = [...head, ...Array<number>(tail === undefined ? 0 : absent).fill(0), ...(tail ?? [])];
  return groups.some(Number.isNaN) ? undefined : groups;
}

function groupOf(text: string): number[] {
  const bytes = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1).map(Number);
  if (bytes === undefined) return [/^[0-9a-f]{1,4}$/i.test(text) ? Number.parseInt(text, 16) : Number.NaN];
  const [a = 0, b = 0, c = 0, d = 0] = bytes;
  return bytes.every((byte) => byte <= 255) ? [a * 256 + b, c * 256 + d] : [Number.NaN];
}

/**
 * What limits and turns count by: of IPv4 the address, also where IPv6 maps it (RFC 4291, 2.5.5.2); of IPv6 the /64, since one host has all addresses of its network
 * (RFC 4291, 2.5.4). What is no address stays as it is.
 */
export function limitKey(address: string): string {
  const groups = groupsOf(address);
  if (groups === undefined) return address;
  const [mark, high = 0, low = 0] = groups.slice(5);
  if (mark === 0xff_ff && groups.slice(0, 5).every((group) => group === 0))
    return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}
