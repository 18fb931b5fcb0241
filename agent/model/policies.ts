/** What the PeeringPolicies of this cluster say about one peer. Pure. */
import { isWithin } from '#shared/domain/cidr.ts';
import { type PeeringPolicy, ReflectedKind } from '#shared/schema/isthmus/peering-policy.ts';

type Side = 'asConsumer' | 'asProvider';

/** Those that let this cluster be on that side of a peering with `peer`. */
export const policiesAbout = (policies: readonly PeeringPolicy[], side: Side, peer: string): PeeringPolicy[] =>
  policies.filter(({ spec }) => {
    const terms = spec[side];
    return terms?.enabled === true && terms.peers.some((one) => one === '*' || one === peer);
  });

/** Policies add up. A cluster without any said nothing, and all kinds cross; one whose policies leave this peer out lets none. */
export function reflectedKinds(
  policies: readonly PeeringPolicy[],
  side: Side,
  peer: string,
): ReadonlySet<ReflectedKind> {
  if (policies.length === 0) return new Set(ReflectedKind.options);
  return new Set(policiesAbout(policies, side, peer).flatMap(({ spec }) => spec.reflectedKinds));
}

/** Kinds that some consumer may not send: only these have to be looked at. */
export function kindsRefusedToSome(policies: readonly PeeringPolicy[]): ReflectedKind[] {
  if (policies.length === 0) return [];
  const offers = policies.filter(({ spec }) => spec.asProvider?.enabled === true);
  const forAll = offers.some(({ spec }) => spec.asProvider?.peers.includes('*'));
  return ReflectedKind.options.filter(
    (kind) => !forAll || !offers.every(({ spec }) => spec.reflectedKinds.includes(kind)),
  );
}

/** Why this cluster takes no capacity from `provider`; undefined: it may, or no policy was ever written. */
export function consumerRefusal(policies: readonly PeeringPolicy[], provider: string): string | undefined {
  if (policies.length === 0 || policiesAbout(policies, 'asConsumer', provider).length > 0) return undefined;
  return `no PeeringPolicy of this cluster (${namesOf(policies)}) has spec.asConsumer.enabled and ${provider} or * among its peers: write one, or leave the peering out`;
}

/** Why there is no link to `peer`, or none with these ranges of it; undefined: one policy allows it, or no policy was ever written. */
export function linkRefusal(
  policies: readonly PeeringPolicy[],
  peer: string,
  ranges: readonly string[],
): string | undefined {
  if (policies.length === 0) return undefined;
  const about = new Set((['asConsumer', 'asProvider'] as const).flatMap((side) => policiesAbout(policies, side, peer)));
  if (about.size === 0)
    return `no PeeringPolicy of this cluster (${namesOf(policies)}) is enabled as consumer or provider with ${peer} or * among its peers`;
  const objections = [...about].map(({ metadata: { name }, spec: { network } }) => {
    if (network?.enabled === false) return `PeeringPolicy ${name} has spec.network.enabled false: no links to ${peer}`;
    const accepted = network?.remoteCidrs ?? [];
    const stray = accepted.length === 0 ? undefined : ranges.find((range) => !isWithin(range, accepted));
    return stray === undefined
      ? undefined
      : `${stray} is announced for ${peer}; PeeringPolicy ${name} accepts spec.network.remoteCidrs ${accepted.join(', ')}`;
  });
  return objections.includes(undefined) ? undefined : objections[0];
}

const namesOf = (policies: readonly PeeringPolicy[]): string =>
  policies
    .map(({ metadata }) => metadata.name)
    .sort()
    .join(', ');
