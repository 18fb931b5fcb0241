/** Addresses of a peer's pods as this cluster reaches them: prefix translation (docs/design/networking.md#how-is-an-address-translated). Pure. */
import { formatAddress, parseAddress, parseCidr, sizeOf } from '#shared/domain/cidr.ts';
import { networkLabel, networkType } from '#shared/domain/network-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Network } from '#shared/schema/liqo/network.ts';

/**
 * Ranges that the peer really has, each with what this cluster calls it; without `view` it has no name here yet. `holder`: what has that range in
 * this cluster, which has no link to the peer.
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
 * An address outside all ranges stays what it is: that of a pod in its node's network. Undefined while the range has no view: the address
 * itself may belong to a pod of this cluster.
 */
export function reachedAt(ranges: RemoteRanges, address: string): string | undefined {
  const number = parseAddress(address);
  if (number === undefined) return address; // IPv6, which crosses no link
  for (const { real, view } of ranges) {
    const from = parseCidr(real);
    if (from === undefined || number < from.base || number >= from.base + sizeOf(from.length)) continue;
    const to = view === undefined ? undefined : parseCidr(view);
    return to && formatAddress(to.base + (number - from.base));
  }
  return address;
}

/**
 * Of a peer without a link, whose addresses stay what they are where the two networks are one. An address in one of these belongs to something else
 * here: to a pod or Service of this cluster, or to another peer. Ranges that are only reserved may be those of the peer.
 */
export const unlinkedRanges = (networks: readonly Network[]): RemoteRanges =>
  networks.flatMap(({ metadata, status }) => {
    const isOnlyReserved = metadata.labels?.[networkLabel.networkType] === networkType.reserved;
    if (status?.cidr === undefined || isOnlyReserved) return [];
    return [{ real: status.cidr, holder: `Network ${metadata.namespace}/${metadata.name}` }];
  });

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
