/** What two clusters agree to, by their PeeringPolicies. Policies add up: what any one of them allows is allowed. */
import { excessOver } from '#shared/domain/quantity.ts';
import type { ClusterFacts, PolicyFacts } from '#shared/schema/protocol/agent-protocol.ts';
import type { PeeringSpec } from './records.ts';

export type Verdict =
  | { readonly kind: 'granted'; readonly policy: string }
  /** A human of that cluster has to agree first. */
  | { readonly kind: 'undecided'; readonly message: string; readonly action: string }
  | { readonly kind: 'refused'; readonly message: string; readonly detail: Readonly<Record<string, unknown>> };

export type Terms = Pick<PeeringSpec, 'consumer' | 'provider' | 'resources' | 'class'>;

const names = (policies: readonly PolicyFacts[]): string => policies.map((policy) => policy.name).join(', ');

const lists = (peers: readonly string[], peer: string): boolean => peers.includes('*') || peers.includes(peer);

export function judgeConsumer(facts: ClusterFacts, { consumer, provider }: Terms): Verdict {
  const matching = facts.policies.filter(({ asConsumer }) => asConsumer.enabled && lists(asConsumer.peers, provider));
  const accepting = matching.find(({ asConsumer }) => asConsumer.autoAccept);
  if (accepting) return { kind: 'granted', policy: accepting.name };
  return undecided({ cluster: consumer, peer: provider, side: 'asConsumer', matching });
}

export function judgeProvider(facts: ClusterFacts, terms: Terms): Verdict {
  const { consumer, provider } = terms;
  const matching = facts.policies.filter(({ asProvider }) => asProvider.enabled && lists(asProvider.peers, consumer));
  const fitting = matching.filter((policy) => objectionOf(policy, terms) === undefined);
  const accepting = fitting.find(({ asProvider }) => asProvider.autoAccept);
  if (accepting) return { kind: 'granted', policy: accepting.name };
  const [first] = matching;
  if (first && fitting.length === 0) return refused(first, terms);
  return undecided({ cluster: provider, peer: consumer, side: 'asProvider', matching: fitting });
}

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
  const { field, asked, limit } = objectionOf(policy, terms) ?? { field: '', asked: '', limit: '' };
  const { provider } = terms;
  return {
    kind: 'refused',
    message:
      field === 'class'
        ? `class is ${asked}; PeeringPolicy ${policy.name} of ${provider} accepts ${limit}`
        : `${field} is ${asked}; PeeringPolicy ${policy.name} of ${provider} allows at most ${limit} per peer`,
    detail: { field, value: asked, limit, policy: policy.name, cluster: provider },
  };
}

interface Undecided {
  readonly cluster: string;
  readonly peer: string;
  readonly side: 'asConsumer' | 'asProvider';
  readonly matching: readonly PolicyFacts[];
}

function undecided({ cluster, peer, side, matching }: Undecided): Verdict {
  const role = side === 'asConsumer' ? 'provider' : 'consumer';
  if (matching.length > 0) {
    return {
      kind: 'undecided',
      message: `PeeringPolicy ${names(matching)} of ${cluster} allows ${peer} as ${role}, but accepts nothing by itself`,
      action: `in ${cluster}, set spec.${side}.autoAccept to true in PeeringPolicy ${names(matching.slice(0, 1))}`,
    };
  }
  return {
    kind: 'undecided',
    message: `no PeeringPolicy of ${cluster} accepts ${peer} as ${role}`,
    action: `in ${cluster}, make a PeeringPolicy with spec.${side}.autoAccept: true and ${peer} among spec.${side}.peers`,
  };
}
