/** Proxies in front of the broker that are believed when they say whom a request comes from. */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { unmapped } from '#shared/domain/socket-address.ts';
import { AppError } from '#shared/errors/app-error.ts';

export interface Proxies {
  includes(address: string): boolean;
  /**
   * The address of the client: of the connection, or, where that is a trusted proxy, the last one in X-Forwarded-For that is none. What stands in
   * front of that anybody may have written.
   */
  clientOf(message: IncomingMessage): string;
}

/** `ranges`: addresses and CIDR blocks. Throws `invalid_input` naming the one that is none. */
export function trustProxies(ranges: readonly string[]): Proxies {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits, more] = range.split('/');
    const family = isIP(address);
    const most = family === 6 ? 128 : 32;
    const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    if (family === 0 || more !== undefined || !(length <= most)) {
      throw new AppError(
        'invalid_input',
        `trusted-proxy is ${JSON.stringify(range)}, accepted are addresses and CIDR blocks, for example 10.0.0.0/8`,
        { detail: { field: 'trusted-proxy', value: range } },
      );
    }
    list.addSubnet(address, length, family === 6 ? 'ipv6' : 'ipv4');
  }
  const includes = (address: string): boolean => {
    const family = isIP(address);
    return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4');
  };
  return {
    includes,
    clientOf(message) {
      let client = unmapped(message.socket.remoteAddress ?? '');
      const forwarded = [message.headers['x-forwarded-for'] ?? []].flat().join(',').split(',');
      for (const text of forwarded.reverse()) {
        if (!includes(client)) break;
        const address = unmapped(text.trim());
        // A proxy that says nothing that is an address: what is known is the proxy itself.
        if (isIP(address) === 0) break;
        client = address;
      }
      return client;
    },
  };
}
