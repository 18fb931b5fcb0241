/** The QoS class that Kubernetes gives a pod, and how a guest keeps it although its provider fills in what it does not request. Pure. */

import * as z from 'zod';
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

const Quantities = z.record(z.string(), z.union([z.string(), z.number()])).nullish();
const LimitRangeSpec = z.looseObject({
  limits: z.array(
    z.looseObject({
      type: z.string(),
      default: Quantities,
      defaultRequest: Quantities,
      max: Quantities,
      min: Quantities,
    }),
  ),
});

/** What a LimitRange, by its spec, fills into containers: by Kubernetes' rules the bounds are defaults, too, and a limit is a request. The first item that names a resource decides. */
function withLimitRange(pod: PodSpec, spec: unknown): PodSpec {
  // The API server judges it when it is applied.
  const items = (LimitRangeSpec.safeParse(spec).data?.limits ?? []).filter(({ type }) => type === 'Container');
  const each = items.map(({ min, max, default: limit, defaultRequest }) => {
    const limits = { ...max, ...limit };
    return { limits, requests: { ...min, ...limits, ...defaultRequest } };
  });
  const [limits, requests] = (['limits', 'requests'] as const).map((list) =>
    Object.assign({}, ...each.map((one) => one[list]).toReversed()),
  );
  const add = ({ resources, ...container }: Container): Container => ({
    ...container,
    resources: {
      ...resources,
      limits: { ...limits, ...resources?.limits },
      requests: { ...requests, ...resources?.limits, ...resources?.requests },
    },
  });
  return {
    ...pod,
    containers: pod.containers.map(add),
    ...(pod.initContainers && { initContainers: pod.initContainers.map(add) }),
  };
}

/** The provider's own LimitRange in the namespaces of guests changes what is made of a ShadowPod after us. */
export function limitRangeProblem(made: PodSpec, spec: unknown): string | undefined {
  const [before, after] = [qosClassOf(made), qosClassOf(withLimitRange(made, spec))];
  if (before === after) return undefined;
  return `spec.pod.containers have the QoS class ${before}, and the defaults of this provider's LimitRange (namespaceDefaults.limitRange of the provider's PeeringPolicy) make that ${after}, which a consumer that runs Liqo cannot report of its own pod; accepted are pods whose containers all have requests and limits for what the LimitRange names, or at the provider one without defaults, min and max of cpu and memory`;
}
