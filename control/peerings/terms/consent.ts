/** What two clusters agree to, by their PeeringPolicies. Policies add up: what any one of them allows is allowed. */
import { excessOver } from '#shared/domain/quantity.ts';
import type { ClusterFacts, PolicyFacts } from '#shared/schema/protocol/agent-protocol.ts';
import type { PeeringSpec } from '../../model/peering-records.ts';

export type Verdict =
  | { readonly kind: 'granted'; readonly policy: string }
  /** A human of that cluster has to agree first. */
  | { readonly kind: 'undecided'; readonly message: string; readonly action: string }
  | { readonly kind: 'refused'; readonly message: string; readonly detail: Readonly<Record<string, unknown>> };

export type Terms = Pick<PeeringSpec, 'consumer' | 'provider' | 'resources' | 'class' | 'network'>;

/** Whose cluster the peer is. */
export interface PeerOwner {
  readonly tenant: string;
  /** Not the tenant of the cluster that is asked. */
  readonly foreign: boolean;
  /** The tenant of the cluster that is asked has agreed to this very peering: its policy need not accept by itself, only allow. */
  readonly agreed?: boolean;
}

/** Policies that do not say whom they are about are about their own tenant. */
export const isAbout = ({ tenants }: PolicyFacts, peer: PeerOwner | undefined): boolean =>
  peer === undefined || (tenants === undefined ? !peer.foreign : lists(tenants, peer.tenant));

const names = (policies: readonly PolicyFacts[]): string => policies.map((policy) => policy.name).join(', ');

export const lists = (peers: readonly string[], peer: string): boolean => peers.includes('*') || peers.includes(peer);

export function validateConsumer(facts: ClusterFacts, { consumer, provider }: Terms, owner?: PeerOwner): Verdict {
  const matching = facts.policies.filter(
    (policy) => isAbout(policy, owner) && policy.asConsumer.enabled && lists(policy.asConsumer.peers, provider),
  );
  const accepting = matching.find(
    ({ asConsumer }) => asConsumer.autoAccept || owner?.agreed || agrees(facts, provider, 'consumer'),
  );
  if (accepting) return { kind: 'granted', policy: accepting.name };
  return undecided({ cluster: consumer, peer: provider, side: 'asConsumer', matching, owner });
}

export function validateProvider(facts: ClusterFacts, terms: Terms, owner?: PeerOwner): Verdict {
  const { consumer, provider } = terms;
  const matching = facts.policies.filter(
    (policy) => isAbout(policy, owner) && policy.asProvider.enabled && lists(policy.asProvider.peers, consumer),
  );
  const fitting = matching.filter((policy) => objectionOf(policy, terms) === undefined);
  const accepting = fitting.find(
    ({ asProvider }) => asProvider.autoAccept || owner?.agreed || agrees(facts, consumer, 'provider'),
  );
  if (accepting) return { kind: 'granted', policy: accepting.name };
  const [first] = matching;
  if (first && fitting.length === 0) return refused(first, terms);
  return undecided({ cluster: provider, peer: consumer, side: 'asProvider', matching: fitting, owner });
}

/** An administrator of the cluster has agreed, by a TrustedPeer. */
const agrees = ({ consents = [] }: ClusterFacts, peer: string, role: 'consumer' | 'provider'): boolean =>
  consents.some((consent) => consent.peer === peer && consent.roles.includes(role));

type Objection = { readonly field: string; readonly asked: string; readonly limit: string };

/** Undefined: the policy allows these terms. */
function objectionOf({ asProvider }: PolicyFacts, terms: Terms): Objection | undefined {
  if (!lists(asProvider.classes, terms.class)) {
    return { field: 'class', asked: terms.class, limit: asProvider.classes.join(', ') || 'none' };
  }
  const [excess] = excessOver(terms.resources, asProvider.maxResourcesPerPeer);
  return excess && { field: `resources.${excess.resource}`, asked: excess.asked, limit: excess.limit };
}

function refused(policy: PolicyFacts, terms: Terms): Verdict {
  const { field, asked: requested, limit } = objectionOf(policy, terms) ?? { field: '', asked: '', limit: '' };
  const { provider } = terms;
  return {
    kind: 'refused',
    message:
      field === 'class'
        ? `class is ${requested}; PeeringPolicy ${policy.name} of ${provider} accepts ${limit}`
        : `${field} is ${requested}; PeeringPolicy ${policy.name} of ${provider} allows at most ${limit} per peer`,
    detail: { field, value: requested, limit, policy: policy.name, cluster: provider },
  };
}

interface Undecided {
  readonly cluster: string;
  readonly peer: string;
  readonly side: 'asConsumer' | 'asProvider';
  readonly matching: readonly PolicyFacts[];
  readonly owner: PeerOwner | undefined;
}

function undecided({ cluster, peer, side, matching, owner }: Undecided): Verdict {
  const role = side === 'asConsumer' ? 'provider' : 'consumer';
  if (matching.length > 0) {
    return {
      kind: 'undecided',
      message: `PeeringPolicy ${names(matching)} of ${cluster} allows ${peer} as ${role}, but accepts nothing by itself`,
      action: `in ${cluster}, agree with \`isthmus trust ${peer} --as ${side === 'asConsumer' ? 'consumer' : 'provider'}\`, or set spec.${side}.autoAccept to true in PeeringPolicy ${names(matching.slice(0, 1))}`,
    };
  }
  return {
    kind: 'undecided',
    message: `no PeeringPolicy of ${cluster} accepts ${peer}${owner?.foreign ? ` of tenant ${owner.tenant}` : ''} as ${role}`,
    action: owner?.foreign
      ? `in ${cluster}, make a PeeringPolicy with ${owner.tenant} among spec.tenants, ${peer} among spec.${side}.peers${owner.agreed ? '' : ` and spec.${side}.autoAccept: true`}`
      : `in ${cluster}, make a PeeringPolicy with spec.${side}.autoAccept: true and ${peer} among spec.${side}.peers`,
  };
}

/** Within one tenant both clusters have the same owner; across, the provider's tenant agreed by invitation or request. */
export const ownersOf = (
  tenant: string | undefined,
  across: PeeringSpec['across'],
): { readonly ofConsumer?: PeerOwner; readonly ofProvider?: PeerOwner } => {
  if (across) {
    return {
      ofConsumer: { tenant: across.consumer, foreign: true, agreed: true },
      ofProvider: { tenant: across.provider, foreign: true },
    };
  }
  const own = tenant === undefined ? undefined : { tenant, foreign: false };
  return own ? { ofConsumer: own, ofProvider: own } : {};
};
