/** The rules for guests as the caches know them: by consumer, and what becomes of the spec of each ShadowPod. */
import { creatorOf } from '#agent/model/shadow-pod-creator.ts';
import { termsFor } from '#agent/peering/slices/grant.ts';
import type { Cache, Caches } from '#kube/model/types.ts';
import type { PodSpec } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import type { LimitsEnforcement } from '#shared/schema/definition/fields.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { type Quota, quotas } from '#shared/schema/liqo/quota.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { type GuestRules, guestRules } from './decide.ts';
import { guestSpec } from './guest-spec.ts';
import { classProblem, limitRangeProblem, withClassKept } from './qos-class.ts';

const userIndex = 'user';
const userOf = ({ spec }: Quota): string[] => [creatorOf(spec.user)];
const strictest: readonly LimitsEnforcement[] = ['Hard', 'Soft'];

export interface Rulebook {
  readonly policies: Cache<PeeringPolicy>;
  readonly quotas: Cache<Quota>;
  /** By the creator label of ShadowPods. */
  quotasOf(creator: string): readonly Quota[];
  rulesOf(consumer: string): GuestRules;
  /** The spec that counts against its Quota. */
  specOf(shadow: ShadowPod): PodSpec;
  /** The spec by which a pod is made of it. */
  podSpecOf(shadow: ShadowPod): PodSpec;
  /** Why there can be no pod of it with the limits that the rules ask for; undefined: there can. */
  problemOf(shadow: ShadowPod): string | undefined;
}

/**
 * Whether the consumer runs Isthmus, which keeps the QoS class of its own pod. Liqo's virtual kubelet writes that of the pod here into the status there, and an
 * API server refuses a status with another class: the pod at home would stay Pending while this one runs.
 */
const keepsOwnClass = ({ metadata }: ShadowPod): boolean =>
  metadata.annotations?.[isthmusAnnotation.localPodUid] !== undefined;

export function createRulebook(caches: Caches): Rulebook {
  const policies = caches.cache(peeringPolicies);
  const limits = caches.cache(quotas, { indexes: { [userIndex]: userOf } });
  const known = new Map<string, GuestRules>();
  policies.subscribe(() => known.clear());

  function rulesOf(consumer: string): GuestRules {
    const rules = known.get(consumer) ?? guestRules(policies.list(), consumer);
    known.set(consumer, rules);
    return rules;
  }
  const quotasOf = (creator: string): readonly Quota[] => limits.byIndex(userIndex, creator);

  const rulesFor = ({ metadata }: ShadowPod): GuestRules => rulesOf(metadata.labels?.[label.origin] ?? '');
  function enforcementOf({ metadata }: ShadowPod): LimitsEnforcement {
    const named = quotasOf(metadata.labels?.[label.creatorUser] ?? '').map(
      ({ spec: { limitsEnforcement } }) => limitsEnforcement,
    );
    return strictest.find((one) => named.includes(one)) ?? 'None';
  }
  const specOf = (shadow: ShadowPod): PodSpec => guestSpec(shadow.spec.pod, rulesFor(shadow), enforcementOf(shadow));
  function podSpecOf(shadow: ShadowPod): PodSpec {
    const filled = specOf(shadow);
    if (keepsOwnClass(shadow)) return filled;
    return withClassKept(guestSpec(shadow.spec.pod, rulesFor(shadow), 'None'), filled);
  }

  return {
    policies,
    quotas: limits,
    quotasOf,
    rulesOf,
    specOf,
    podSpecOf,
    problemOf(shadow) {
      if (keepsOwnClass(shadow)) return undefined;
      const consumer = shadow.metadata.labels?.[label.origin] ?? '';
      const ranges = termsFor(policies.list(), consumer).map(
        ([, { namespaceDefaults }]) => namespaceDefaults?.limitRange,
      );
      return (
        classProblem(shadow.spec.pod, specOf(shadow), enforcementOf(shadow)) ??
        limitRangeProblem(podSpecOf(shadow), ranges.find(Boolean))
      );
    },
  };
}
