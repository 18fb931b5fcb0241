/** The rules for guests as the caches know them: by consumer, and what becomes of the spec of each ShadowPod. */
import { creatorOf } from '#agent/model/shadow-pod-creator.ts';
import type { Cache, Caches } from '#kube/model/types.ts';
import type { PodSpec } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { LimitsEnforcement } from '#shared/schema/definition/fields.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { type Quota, quotas } from '#shared/schema/liqo/quota.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { type GuestRules, guestRules } from './decide.ts';
import { guestSpec } from './guest-spec.ts';

const userIndex = 'user';
const userOf = ({ spec }: Quota): string[] => [creatorOf(spec.user)];
const strictest: readonly LimitsEnforcement[] = ['Hard', 'Soft'];

export interface Rulebook {
  readonly policies: Cache<PeeringPolicy>;
  readonly quotas: Cache<Quota>;
  /** By the creator label of ShadowPods. */
  quotasOf(creator: string): readonly Quota[];
  rulesOf(consumer: string): GuestRules;
  /** The spec by which a pod is made of it, and that counts against its Quota. */
  specOf(shadow: ShadowPod): PodSpec;
}

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

  return {
    policies,
    quotas: limits,
    quotasOf,
    rulesOf,
    specOf({ metadata, spec }) {
      const named = quotasOf(metadata.labels?.[label.creatorUser] ?? '').map(
        ({ spec: { limitsEnforcement } }) => limitsEnforcement,
      );
      const enforcement = strictest.find((one) => named.includes(one)) ?? 'None';
      return guestSpec(spec.pod, rulesOf(metadata.labels?.[label.origin] ?? ''), enforcement);
    },
  };
}
