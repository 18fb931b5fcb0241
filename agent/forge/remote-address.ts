/** Addresses of a peer's pods as this cluster reaches them: prefix translation (docs/design/networking.md#how-is-an-address-translated). Pure. */
import { formatAddress, parseAddress, parseCidr, sizeOf } from '#shared/domain/cidr.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';

/** Ranges that the peer really has, each with what this cluster calls it; without `view` it has no name here yet. */
export type RemoteRanges = readonly { readonly real: string; readonly view?: string }[];

/** Without a Configuration there is no link, and every address stays what it is. */
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
