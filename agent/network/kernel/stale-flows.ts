/** Which flows the kernel still translates as it should not any more: arguments of `conntrack`, one list for each call. Pure. */
import { type KernelState, overlayDevice, type Route } from './kernel-state.ts';
import type { FoundTable } from './nft-diff.ts';
import type { Observed } from './observed.ts';

/** More than so many calls take longer than finding out again about all. */
const mostCalls = 32;

/** Packets for this port of the node that are answered from there, too. */
export const untranslated = (port: number): readonly string[] => [
  '-D',
  '-p',
  'udp',
  '--orig-port-dst',
  `${port}`,
  '--reply-port-src',
  `${port}`,
];

/** `before` and `after`: the same table as the kernel had it, and has it now. */
export function staleFlows(
  before: FoundTable,
  after: FoundTable,
  { sources, destinations }: NonNullable<KernelState['translation']>,
): readonly (readonly string[])[] {
  if (before.nat !== after.nat) return [['-F']];
  const changed = (map: string): string[] =>
    Object.entries(before.maps[map] ?? {})
      .filter(([key, value]) => after.maps[map]?.[key] !== value)
      .map(([key]) => key);
  const calls = [
    ...changed(sources).map((address) => ['-D', '-s', address]),
    ...changed(destinations).map((address) => ['-D', '-d', address]),
  ];
  return calls.length > mostCalls ? [['-F']] : calls;
}

/**
 * Flows to where the kernel had no way through the overlay so far; those of users' own routes are theirs. `begins`: an earlier process may have ended
 * between the route and this, so that flows to gateways themselves, which are pings, are forgotten once more. However many there are, no other flow is:
 * the namespace is the node's, and what its pods have open would lose its translation.
 */
export function flowsOfOtherWays(
  { claimsFlows, routes }: Pick<KernelState, 'claimsFlows' | 'routes'>,
  { routes: found }: Pick<Observed, 'routes'>,
  begins: boolean,
): readonly (readonly string[])[] {
  if (claimsFlows !== true) return [];
  const leadsOverlay = ({ device, configuration }: Route): boolean =>
    device === overlayDevice && configuration === undefined;
  const had = new Set(found.filter(leadsOverlay).map(({ table, destination }) => `${table} ${destination}`));
  const isFresh = ({ table, destination, via }: Route): boolean =>
    !had.has(`${table} ${destination}`) || (begins && via === undefined);
  return routes
    .filter((route) => leadsOverlay(route) && isFresh(route))
    .map(({ destination }) => ['-D', '-d', destination]);
}
