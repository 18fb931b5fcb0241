/** What a node is connected to besides our tunnels: no range of a peer may lead packets for any of it into one. Pure. */
import { canonicalCidr, distinctAddresses, parseAddress, parseCidr } from '#shared/domain/cidr.ts';
import { overlayDevice, tunnelDevice } from '../kernel/kernel-state.ts';

interface MainRoute {
  readonly dst?: string;
  readonly dev?: string;
  readonly gateway?: string;
  readonly scope?: string;
  readonly nexthops?: readonly { readonly gateway?: string }[];
}

/** An annotation is no place for more; the widest networks come first. */
const most = 64;
const own: readonly (string | undefined)[] = [overlayDevice, tunnelDevice];

/**
 * Connected routes, gateways and resolvers, as ranges. `routes`: what `ip -4 -j route show table main` prints. `resolvers`: texts of resolv.conf
 * files. Connected routes of one address are left out: where a CNI has a route for each pod, that is what they are.
 */
export function nodeNetworksIn(routes: string, resolvers: readonly string[]): readonly string[] {
  const all = (JSON.parse(routes || '[]') as MainRoute[]).filter(({ dev }) => !own.includes(dev));
  const connected = all.flatMap(({ dst = '', scope, gateway }) =>
    scope === 'link' && gateway === undefined && dst.includes('/') ? [canonicalCidr(dst)] : [],
  );
  const gateways = all.flatMap(({ gateway, nexthops = [] }) => [gateway, ...nexthops.map((hop) => hop.gateway)]);
  const servers = resolvers.flatMap((text) =>
    [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address]) => address),
  );
  const addresses = [...gateways, ...servers].flatMap((one) => {
    const address = one === undefined ? undefined : parseAddress(one);
    // Loopback is the resolver on the node itself.
    return one === undefined || address === undefined || address >>> 24 === 127 ? [] : [`${one}/32`];
  });
  const ranges = connected.filter((text) => parseCidr(text) !== undefined && !text.endsWith('/32'));
  const wideFirst = [...distinctAddresses(ranges), ...distinctAddresses(addresses)];
  return wideFirst.slice(0, most);
}
