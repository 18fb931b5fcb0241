/** How each node and gateway fares with a user's configuration: one entry per host in `status.conditions` (reference 1.8, 1.9). Pure. */
import { timestamp } from '#kube/writes/conditions.ts';
import type { HostCondition } from '#shared/schema/liqo/host-conditions.ts';
import { compareText } from '../objects/user-targets.ts';

/** Undefined: this host does not apply the configuration. */
export type HostOutcome =
  | { readonly applied: true }
  | { readonly applied: false; readonly message: string }
  | undefined;

/**
 * The list with this host's entry set and the entries of hosts that are gone left out; the same list when that changes nothing.
 * An entry's time moves only when its type does.
 */
export function withHost(
  conditions: readonly HostCondition[] | undefined,
  host: string,
  outcome: HostOutcome,
  isHost: (host: string) => boolean,
  now: number,
): readonly HostCondition[] {
  const all = conditions ?? [];
  const others = all.filter((condition) => condition.host !== host && isHost(condition.host));
  const own = all.filter((condition) => condition.host === host);
  const entry = outcome === undefined ? [] : [entryOf(own[0], host, outcome, now)];
  const unchanged =
    others.length + own.length === all.length &&
    own.length === entry.length &&
    own.every((known) => known === entry[0]);
  return unchanged ? all : [...others, ...entry].sort((a, b) => compareText(a.host, b.host));
}

const longestMessage = 1_000;

function entryOf(
  known: HostCondition | undefined,
  host: string,
  outcome: Exclude<HostOutcome, undefined>,
  now: number,
): HostCondition {
  const type = outcome.applied ? 'Applied' : 'Error';
  const message = outcome.applied ? undefined : outcome.message.slice(0, longestMessage);
  if (known?.type === type && known.status === 'True' && known.message === message) return known;
  const lastTransitionTime = known?.type === type ? known.lastTransitionTime : timestamp(now);
  return {
    host,
    type,
    status: 'True',
    ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }),
    ...(message === undefined ? {} : { reason: 'NotTaken', message }),
  };
}
