/** Addresses of a peer's pods as this cluster reaches them: prefix translation (docs/design/networking.md#how-is-an-address-translated). Pure. */
import { contains, formatAddress, parseAddress, parseCidr, sizeOf } from '#shared/domain/cidr.ts';
import { networkLabel, networkType } from '#shared/domain/network-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Network } from '#shared/schema/liqo/network.ts';

/**
 * Ranges that the peer really has, each with what this cluster calls it; without `view` it has no name here yet. `holder`: what has that range in
 * this cluster, which has no link to the peer. The first that contains an address counts.
 */
export type RemoteRanges = readonly { readonly real: string; readonly view?: string; readonly holder?: string }[];

/** Of a peer with a link; none without a Configuration. */
export function remoteRanges(configuration: Configuration | undefined): RemoteRanges {
  const real = configuration?.spec.remote.cidr;
  const view = configuration?.status?.remote?.cidr;
  return [...paired(real?.pod, view?.pod), ...paired(real?.external, view?.external)];
}

const paired = (real: readonly string[] = [], views: readonly string[] = []): RemoteRanges =>
  real.map((range, index) => ({ real: range, ...(views[index] ? { view: views[index] } : {}) }));

/**
 * Undefined while the range has no view, and for an address outside all ranges: it may belong to something in this cluster or to another peer, and the
 * peer can name any. Such are those of pods in the network of their node, and all of IPv6, which cross no link.
 */
export function reachedAt(ranges: RemoteRanges, address: string): string | undefined {
  const number = parseAddress(address);
  const found = ranges.find(({ real }) => contains(real, address));
  const [from, to] = [parseCidr(found?.real ?? ''), parseCidr(found?.view ?? '')];
  return number === undefined || !from || !to ? undefined : formatAddress(to.base + (number - from.base));
}

/** Whether the address is in no range of the peer. */
export const isOutside = (ranges: RemoteRanges, address: string): boolean =>
  !ranges.some(({ real }) => contains(real, address));

/**
 * Of a peer without a link. Its addresses stay what they are in the ranges that a policy of this cluster names for it (`named`), for clusters whose
 * networks are one. An address in one of those with a holder belongs to something else here: to a pod or Service of this cluster, or to another peer.
 * Ranges that are only reserved may be those of the peer.
 */
export const unlinkedRanges = (networks: readonly Network[], named: Iterable<string> = []): RemoteRanges => [
  ...networks.flatMap(({ metadata, status }) => {
    const isOnlyReserved = metadata.labels?.[networkLabel.networkType] === networkType.reserved;
    if (status?.cidr === undefined || isOnlyReserved) return [];
    return [{ real: status.cidr, holder: `Network ${metadata.namespace}/${metadata.name}` }];
  }),
  ...[...named].map((range) => ({ real: range, view: range })),
];

/** Why an address of a peer without a link means something else here; undefined: it does not. */
export function takenBy(
  ranges: RemoteRanges,
  address: string,
): { readonly range: string; readonly holder: string } | undefined {
  const number = parseAddress(address);
  if (number === undefined) return undefined;
  for (const { real, holder } of ranges) {
    const range = parseCidr(real);
    if (holder !== undefined && range && number >= range.base && number < range.base + sizeOf(range.length))
      return { range: real, holder };
  }
  return undefined;
}
