/**
 * Finds the largest packet that passes the tunnel, by asking for packets of chosen sizes. Pure: takes which sizes passed, returns the size to ask for
 * next. Sizes are of IP packets inside the tunnel, in bytes. WireGuard adds 60 over IPv4 (20 IP, 8 UDP, 32 its own), so that an underlay of 1280
 * bytes, the least that any IPv6-capable path has, carries 1220: the search does not go below. On a path that does not pass even that, size is not
 * the fault: the search ends without a result, and the caller keeps the configured size.
 */
const wireGuardOverhead = 60;
export const leastTunnelMtu = 1280 - wireGuardOverhead;

interface MtuSearch {
  /** To be asked now. */
  readonly probe: number;
  /** The largest size known to pass, if any. */
  readonly passes?: number;
  /** The smallest size known not to pass, if any. */
  readonly fails?: number;
}

/** `high` first: most paths let it through, and then one round trip is all. */
const startMtuSearch = (high: number): MtuSearch => ({ probe: high });

type MtuStep = { readonly done: false; readonly search: MtuSearch } | { readonly done: true; readonly mtu?: number };

function mtuStep({ probe, passes, fails }: MtuSearch, passed: boolean): MtuStep {
  const most = passed ? probe : passes;
  const least = passed ? fails : probe;
  if (least === undefined) return { done: true, ...(most === undefined ? {} : { mtu: most }) };
  if (most === undefined) {
    if (probe <= leastTunnelMtu) return { done: true };
    return { done: false, search: { probe: Math.min(leastTunnelMtu, probe - 1), fails: least } };
  }
  if (least - most <= 1) return { done: true, mtu: most };
  return { done: false, search: { probe: Math.floor((most + least) / 2), passes: most, fails: least } };
}

/** `passes` tells whether a packet of that size came back; it repeats lost ones itself. Undefined: nothing passed. */
export async function searchMtu(high: number, passes: (size: number) => Promise<boolean>): Promise<number | undefined> {
  let search = startMtuSearch(high);
  for (;;) {
    const step = mtuStep(search, await passes(search.probe));
    if (step.done) return step.mtu;
    search = step.search;
  }
}
