/** An IPv4 address that a socket of both families shows as an IPv6 one (RFC 4291, 2.5.5.2), as everybody writes it; any other as it is. */
export const unmapped = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');

/** The eight groups of an IPv6 address in hex, also of one with a zone or with an IPv4 address at its end. Undefined: it is none. */
function groupsOf(address: string): readonly string[] | undefined {
  const [text = ''] = address.split('%');
  if (!/^[\da-f:.]*:[\da-f:.]*$/i.test(text) || !URL.canParse(`http://[${text}]`)) return undefined;
  // A URL shows the groups in lower case without zeros in front, and one run of empty groups as `::`.
  const { hostname } = new URL(`http://[${text}]`);
  const [head = [], tail = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  return [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
}

/**
 * What limits and turns count by: of IPv4 the address, also where IPv6 maps it (RFC 4291, 2.5.5.2); of IPv6 the /64, since one host has all addresses of its network
 * (RFC 4291, 2.5.4). What is no address stays as it is.
 */
export function limitKey(address: string): string {
  const groups = groupsOf(address);
  if (groups === undefined) return address;
  const [high = 0, low = 0] = groups.slice(6).map((group) => Number.parseInt(group, 16));
  if (groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff') return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  return `${groups.slice(0, 4).join(':')}::/64`;
}
