/** What this cluster's own PeeringPolicy objects let a broker do here. Pure. */
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import type { DesiredSet, PolicyFacts } from '#shared/schema/protocol/agent-protocol.ts';

export const policyFacts = (policy: PeeringPolicy): PolicyFacts => ({
  name: policy.metadata.name,
  tenants: policy.spec.tenants ?? ['*'],
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

/** Which account at the broker the peer is of; the broker says so for peers of other accounts. */
const isAbout = ({ tenants }: PolicyFacts, peerTenant: string | undefined, ownTenant: string | undefined): boolean => {
  if (tenants === undefined) return peerTenant === undefined || peerTenant === ownTenant;
  if (tenants.includes('*')) return true;
  const tenant = peerTenant ?? ownTenant;
  return tenant !== undefined && tenants.includes(tenant);
};

/** Undefined: some policy allows the peering. `ownTenant` is this cluster's account at the broker. */
export function policyRejection(
  set: Pick<DesiredSet, 'role' | 'peer' | 'peerTenant'>,
  policies: readonly PolicyFacts[],
  ownTenant?: string,
): string | undefined {
  const side = set.role === 'consumer' ? 'asConsumer' : 'asProvider';
  const allows = policies.some(
    (policy) =>
      isAbout(policy, set.peerTenant, ownTenant) &&
      policy[side].enabled &&
      policy[side].peers.some((peer) => peer === '*' || peer === set.peer),
  );
  if (allows) return undefined;
  const tenant = set.peerTenant ?? ownTenant;
  const whose = tenant === undefined ? '' : `, and spec.tenants contain ${tenant} or *`;
  return policies.length === 0
    ? `this cluster has no PeeringPolicy; create one whose spec.${side} is enabled and whose peers contain ${set.peer} or *${whose}`
    : `no PeeringPolicy of this cluster (${policies.map((p) => p.name).join(', ')}) has spec.${side}.enabled and ${set.peer} or * among its peers${whose}`;
}
