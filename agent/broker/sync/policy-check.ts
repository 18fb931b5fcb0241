/** What this cluster's own PeeringPolicy objects let a broker do here. Pure. */
import { isWithin } from '#shared/domain/cidr.ts';
import { defaultTrust, type PeeringPolicy, type TrustMode } from '#shared/schema/isthmus/peering-policy.ts';
import type { DesiredSet, KubeManifest, PolicyFacts } from '#shared/schema/protocol/agent-protocol.ts';
import { brokerKind } from '../kinds/all.ts';
import type { Rejection } from './manifest-check.ts';

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
  network: {
    enabled: policy.spec.network?.enabled ?? true,
    remoteCidrs: [...(policy.spec.network?.remoteCidrs ?? [])],
  },
});

/** Whether the policy is about the peer's account at the broker, which the broker names for peers of other accounts. */
const isAbout = ({ tenants }: PolicyFacts, peerTenant: string | undefined, ownTenant: string | undefined): boolean => {
  if (tenants === undefined) return peerTenant === undefined || peerTenant === ownTenant;
  if (tenants.includes('*')) return true;
  const tenant = peerTenant ?? ownTenant;
  return tenant !== undefined && tenants.includes(tenant);
};

type Peered = Pick<DesiredSet, 'role' | 'peer' | 'peerTenant'>;

const sideOf = ({ role }: Peered): 'asConsumer' | 'asProvider' => (role === 'consumer' ? 'asConsumer' : 'asProvider');

const allowing = (set: Peered, policies: readonly PolicyFacts[], ownTenant: string | undefined): PolicyFacts[] =>
  policies.filter(
    (policy) =>
      isAbout(policy, set.peerTenant, ownTenant) &&
      policy[sideOf(set)].enabled &&
      policy[sideOf(set)].peers.some((peer) => peer === '*' || peer === set.peer),
  );

/** How the first key of the peer may become trusted, and whether a policy accepts the peering without an administrator. */
export function trustPolicy(
  set: Peered,
  policies: readonly PeeringPolicy[],
  ownTenant?: string,
): { readonly modes: readonly TrustMode[]; readonly accepts: boolean } {
  const matching = policies.filter((policy) => allowing(set, [policyFacts(policy)], ownTenant).length > 0);
  return {
    modes: [...new Set(matching.flatMap(({ spec }) => spec.trust?.firstKey ?? defaultTrust))],
    accepts: matching.some(({ spec }) => spec[sideOf(set)]?.autoAccept === true),
  };
}

/** Undefined: `manifest` is not part of a link, or at least one policy that allows the peering allows it as well. */
export function linkRejection(
  set: Peered,
  manifest: KubeManifest,
  policies: readonly PolicyFacts[],
  ownTenant?: string,
): Rejection | undefined {
  const ranges = brokerKind(manifest.kind)?.announcedRanges?.(manifest);
  if (ranges === undefined) return undefined;
  const objections = allowing(set, policies, ownTenant).map(({ name, network }) => {
    if (!network) return undefined;
    if (!network.enabled) return `PeeringPolicy ${name} has spec.network.enabled false: no links to ${set.peer}`;
    const stray = ranges.find((range) => !isWithin(range, network.remoteCidrs));
    return stray === undefined
      ? undefined
      : `${set.peer} announces ${stray}; PeeringPolicy ${name} accepts spec.network.remoteCidrs ${network.remoteCidrs.join(', ')}`;
  });
  const [message] = objections;
  return message === undefined || objections.includes(undefined) ? undefined : { code: 'policy_refused', message };
}

/** Undefined: at least one policy allows the peering. `ownTenant` is this cluster's account at the broker. */
export function policyRejection(set: Peered, policies: readonly PolicyFacts[], ownTenant?: string): string | undefined {
  const side = sideOf(set);
  if (allowing(set, policies, ownTenant).length > 0) return undefined;
  const tenant = set.peerTenant ?? ownTenant;
  const whose = tenant === undefined ? '' : `, and spec.tenants contain ${tenant} or *`;
  return policies.length === 0
    ? `this cluster has no PeeringPolicy; create one whose spec.${side} is enabled and whose peers contain ${set.peer} or *${whose}`
    : `no PeeringPolicy of this cluster (${policies.map((p) => p.name).join(', ')}) has spec.${side}.enabled and ${set.peer} or * among its peers${whose}`;
}
