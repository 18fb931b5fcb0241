/** What this cluster calls an address of a peer, or an address that the peer exports (docs/design/networking.md#how-is-an-address-translated). */
import { moveAddress } from '#shared/domain/cidr.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';

/** Undefined: the address is in none of the peer's ranges, or those have no name here yet. */
export function viewOfPeer(address: string, { spec, status }: Configuration): string | undefined {
  for (const kind of ['pod', 'external'] as const) {
    for (const [index, range] of (spec.remote.cidr[kind] ?? []).entries()) {
      const moved = moveAddress(address, range, status?.remote?.cidr[kind]?.[index] ?? '');
      if (moved !== undefined) return moved;
    }
  }
  return undefined;
}
