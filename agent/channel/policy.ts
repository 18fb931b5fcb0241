/** What this cluster's own PeeringPolicy objects let a broker do here. Pure. */
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import type { DesiredSet, PolicyFacts } from '#shared/schema/protocol/agent-protocol.ts';

export const policyFacts = (policy: PeeringPolicy): PolicyFacts => ({
  name: policy.metadata.name,
  asConsumer: {
    enabled: policy.spec.asConsumer?.enabled ?? false,
    autoAccept: policy.spec.asConsumer?.autoAccept ?? false,
    peers: policy.spec.asConsumer?.peers ?? [],
  },
  asProvider: {
    enabled: policy.spec.asProvider?.enabled ?? false,
    autoAccept: policy.spec.asProvider?.autoAccept ?? false,
    peers: policy.spec.asProvider?.peers ?? [],
    maxResourcesPerPeer: Object.fromEntries(
      Object.entries(policy.spec.asProvider?.maxResourcesPerPeer ?? {}).map(([k, v]) => [k, String(v)]),
    ),
    classes: policy.spec.asProvider?.classes ?? [],
  },
});

/** Undefined: some policy allows the peering. */
export function policyRejection(
  set: Pick<DesiredSet, 'role' | 'peer'>,
  policies: readonly PolicyFacts[],
): string | undefined {
  const side = set.role === 'consumer' ? 'asConsumer' : 'asProvider';
  const allows = policies.some(
    (policy) => policy[side].enabled && policy[side].peers.some((peer) => peer === '*' || peer === set.peer),
  );
  if (allows) return undefined;
  return policies.length === 0
    ? `this cluster has no PeeringPolicy; create one whose spec.${side} is enabled and whose peers contain ${set.peer} or *`
    : `no PeeringPolicy of this cluster (${policies.map((p) => p.name).join(', ')}) has spec.${side}.enabled and ${set.peer} or * among its peers`;
}
