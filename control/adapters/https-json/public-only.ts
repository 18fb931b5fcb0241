/** Keeps requests for tenants away from private networks: what a URL's host is, and a lookup that hands out allowed addresses only. */
import { isIP, type LookupFunction } from 'node:net';
import { isLoopback } from './public-address.ts';

export const notPublic = 'it resolves to an address that is not public';

/** Without the brackets of IPv6. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

export interface AddressRule {
  readonly allowPrivateAddresses: boolean;
  readonly allowed: (address: string) => boolean;
}

/** Undefined: the scheme and the address, as far as the URL tells it, are accepted. `local`: whether the host's name means this machine. */
export function refusedScheme(url: URL, local: boolean, { allowPrivateAddresses }: AddressRule): string | undefined {
  const plainLocal = url.protocol === 'http:' && allowPrivateAddresses && local;
  return url.protocol === 'https:' || plainLocal ? undefined : 'accepted is https only';
}

export function refusedAddress(
  url: URL,
  local: boolean,
  { allowPrivateAddresses, allowed }: AddressRule,
): string | undefined {
  const host = hostOf(url);
  const refused = (isIP(host) !== 0 && !allowed(host)) || (local && !allowPrivateAddresses);
  return refused ? 'accepted are public addresses only' : undefined;
}

export const isLocalName = (host: string): boolean => isLoopback(host) || host === 'localhost';

/** Fails unless every address of the name is allowed; the connection then goes to one that was checked. */
export const guardedLookup =
  (lookup: LookupFunction, allowed: (address: string) => boolean): LookupFunction =>
  (hostname, options, callback) => {
    lookup(hostname, options, (error, address, family) => {
      if (error) return callback(error, address, family);
      const all = Array.isArray(address) ? address.map((entry) => entry.address) : [address];
      if (all.length > 0 && all.every(allowed)) return callback(null, address, family);
      callback(new Error(notPublic), address, family);
    });
  };
