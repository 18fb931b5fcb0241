/** Which flows the kernel still translates as it should not any more: arguments of `conntrack`, one list for each call. Pure. */
import type { KernelState } from './kernel-state.ts';
import type { FoundTable } from './nft-diff.ts';

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
