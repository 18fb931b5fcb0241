/** The QoS class that Kubernetes gives a pod, and how a guest keeps it although its provider fills in what it does not request. Pure. */

import type { PodSpec } from '#shared/domain/kube-object.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, addAmounts, amountsOf } from '#shared/domain/pod-resources.ts';
import type { LimitsEnforcement, ResourceList } from '#shared/schema/definition/fields.ts';
import { settingText } from './refusal-text.ts';

type Container = PodSpec['containers'][number];
type Resources = NonNullable<Container['resources']>;

const deciding = ['cpu', 'memory'] as const;

const decidingOf = (list: ResourceList | null | undefined): Amounts => {
  const amounts = amountsOf(list ?? {});
  const named = deciding.map((resource) => [resource, ownMember(amounts, resource) ?? 0n] as const);
  return Object.fromEntries(named.filter(([, amount]) => amount > 0n));
};

/** By the rules of Kubernetes, and by its defaults: a limit is a request where there is none. Where the pod as a whole has resources, only those count. */
export function qosClassOf(pod: PodSpec): 'BestEffort' | 'Burstable' | 'Guaranteed' {
  const all: readonly (Resources | null | undefined)[] = pod.resources
    ? [pod.resources]
    : [...pod.containers, ...(pod.initContainers ?? [])].map(({ resources }) => resources);
  const each = all.map((resources) => {
    const limits = decidingOf(resources?.limits);
    return { limits, requests: decidingOf({ ...resources?.limits, ...resources?.requests }) };
  });
  const requests = each.map((one) => one.requests).reduce(addAmounts, {});
  const limits = each.map((one) => one.limits).reduce(addAmounts, {});
  if (Object.keys(requests).length === 0 && Object.keys(limits).length === 0) return 'BestEffort';
  const isBounded = each.every((one) => deciding.every((resource) => one.limits[resource] !== undefined));
  return isBounded && deciding.every((resource) => requests[resource] === limits[resource])
    ? 'Guaranteed'
    : 'Burstable';
}

/** `filled`, unless that has another class than `asked`. */
export const withClassKept = (asked: PodSpec, filled: PodSpec): PodSpec =>
  qosClassOf(asked) === qosClassOf(filled) ? filled : asked;

const limited = ({ resources }: Container): string[] => Object.keys(resources?.limits ?? {});

/**
 * Requests only count where they would change the class, because a pod of class BestEffort gets what others leave and is the first to go. A limit
 * that its provider wants has to be in the pod.
 */
export function classProblem(asked: PodSpec, filled: PodSpec, enforcement: LimitsEnforcement): string | undefined {
  const [before, after] = [qosClassOf(asked), qosClassOf(filled)];
  if (before === after) return undefined;
  for (const list of ['containers', 'initContainers'] as const) {
    for (const [i, container] of (asked[list] ?? []).entries()) {
      const had = limited(container);
      const added = limited(filled[list]?.[i] ?? container).filter((resource) => !had.includes(resource));
      if (added.length === 0) continue;
      const [setting, instead] =
        enforcement === 'Hard'
          ? (['limitsEnforcement', 'limitsEnforcement Soft or None'] as const)
          : (['defaultLimits', 'no defaultLimits'] as const);
      return `spec.pod.${list}[${container.name}].resources.limits has no ${added.join(' and ')}: this provider adds them ${settingText(setting)}, which makes the QoS class of the pod ${after} instead of ${before}, and a consumer that runs Liqo cannot report that of its own pod; accepted are pods with these limits, or at the provider ${instead}`;
    }
  }
  return undefined;
}
