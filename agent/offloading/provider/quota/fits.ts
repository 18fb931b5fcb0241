/** Does a pod fit into what is left of a Quota? Pure arithmetic over what exists and what is being admitted. */

import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import type { PodSpec } from '#shared/domain/kube-object.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, addAmounts, amountsOf, podUsage, showAmount } from '#shared/domain/pod-resources.ts';
import type { LimitsEnforcement } from '#shared/schema/definition/fields.ts';
import type { Quota } from '#shared/schema/liqo/quota.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';

type Container = PodSpec['containers'][number];

/** Finished pods run no more, so they take nothing. */
export function usageOf(
  shadows: readonly ShadowPod[],
  specOf: (shadow: ShadowPod) => PodSpec = ({ spec }) => spec.pod,
): Amounts {
  return shadows
    .filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed')
    .map((shadow) => podUsage(specOf(shadow)))
    .reduce(addAmounts, {});
}

export function validateQuota({ spec }: Quota, pod: PodSpec, used: Amounts): Verdict {
  if (spec.cordoned) {
    return deny('quota_cordoned', `the quota of ${spec.user} is cordoned: no new pods for now, running ones stay`);
  }
  const wanting = enforcementProblem(spec.limitsEnforcement ?? 'None', pod);
  if (wanting !== undefined) return deny('quota_exceeded', wanting);
  const total = amountsOf(spec.resources);
  const problems = Object.entries(podUsage(pod)).flatMap(([resource, asked]) => {
    if (asked === 0n) return [];
    const limit = ownMember(total, resource);
    // Quotas that say nothing about the number of pods do not limit it.
    if (limit === undefined) return resource === 'pods' ? [] : [`${resource}: limit not found, the quota grants none`];
    const taken = ownMember(used, resource) ?? 0n;
    if (asked + taken <= limit) return [];
    const free = limit > taken ? limit - taken : 0n;
    const show = (amount: bigint): string => showAmount(resource, amount);
    return [`${resource}: requested ${show(asked)}, free ${show(free)} of ${show(limit)}`];
  });
  return problems.length === 0
    ? allow
    : deny('quota_exceeded', `quota of ${spec.user} exceeded: ${problems.join('; ')}`);
}

/**
 * Soft: each container, or the pod, requests cpu and memory. Hard: each container, and its limits equal its requests; so do those of the pod as a whole, where it
 * has some: containers that are added to a running pod to debug it have no limit but that.
 */
function enforcementProblem(enforcement: LimitsEnforcement, pod: PodSpec): string | undefined {
  if (enforcement === 'None') return undefined;
  for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
    const problem = containerProblem(enforcement, container, pod);
    if (problem !== undefined)
      return `container ${container.name} ${problem}, which limitsEnforcement ${enforcement} asks for`;
  }
  const other = enforcement === 'Hard' ? unevenResource(pod.resources) : undefined;
  return other === undefined
    ? undefined
    : `the pod as a whole has a limit other than its request for ${other}, which limitsEnforcement ${enforcement} does not allow: resources.limits and resources.requests are to be equal`;
}

/** The API server takes a limit for a request that is absent. */
function unevenResource(resources: PodSpec['resources']): string | undefined {
  const limits = amountsOf(resources?.limits);
  const requests = { ...limits, ...amountsOf(resources?.requests) };
  return Object.keys(requests).find((resource) => requests[resource] !== ownMember(limits, resource));
}

function containerProblem(enforcement: LimitsEnforcement, { resources }: Container, pod: PodSpec): string | undefined {
  const requests = amountsOf(resources?.requests);
  const limits = amountsOf(resources?.limits);
  // API servers that do not know resources of whole pods drop them, limits and all.
  const whole = enforcement === 'Hard' ? {} : amountsOf({ ...pod.resources?.limits, ...pod.resources?.requests });
  const missing = ['cpu', 'memory'].find(
    (resource) => ownMember(requests, resource) === undefined && ownMember(whole, resource) === undefined,
  );
  if (missing !== undefined) return `has no request for ${missing}`;
  if (enforcement !== 'Hard') return undefined;
  const unequal = Object.keys(requests).find((resource) => requests[resource] !== ownMember(limits, resource));
  return unequal === undefined ? undefined : `has a limit other than its request for ${unequal}`;
}
