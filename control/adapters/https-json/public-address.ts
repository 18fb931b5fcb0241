/** Which addresses belong to the public internet: SSRF guard: the broker connects to an address chosen by a tenant only if it is one of them. */
import { BlockList, isIP } from 'node:net';

const reserved = new BlockList();
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  reserved.addSubnet(network, bits, 'ipv4');
}
/** Only 2000::/3 is given out; what is special inside it carries IPv4 addresses or is documentation. */
const global6 = new BlockList();
global6.addSubnet('2000::', 3, 'ipv6');
const special6 = new BlockList();
for (const [network, bits] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  special6.addSubnet(network, bits, 'ipv6');
}

/** False for what is no address at all. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !reserved.check(address, 'ipv4');
    case 6:
      return global6.check(address, 'ipv6') && !special6.check(address, 'ipv6');
    default:
      return false;
  }
}

export const isLoopback = (address: string): boolean =>
  address === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
