/** What the PeeringPolicies of this cluster say about one peer. Pure. */
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
