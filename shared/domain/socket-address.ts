/** An IPv4 address that a socket of both families shows as an IPv6 one (RFC 4291, 2.5.5.2), as everybody writes it; any other as it is. */
export const unmapped = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');
