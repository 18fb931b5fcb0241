/** What becomes of a guest's pod spec by the rules of its provider: what is cut, left out and filled in, and what that is called. Pure. */
import type { PodSpec } from '#shared/domain/kube-object.ts';
import { compareQuantities } from '#shared/domain/quantity.ts';
import type { LimitsEnforcement, ResourceList } from '#shared/schema/definition/fields.ts';
import { type GuestRules, matchesAny } from './decide.ts';

type Container = PodSpec['containers'][number];
type Resources = NonNullable<Container['resources']>;
type Toleration = NonNullable<PodSpec['tolerations']>[number];

/** Kubernetes gives them to every pod. */
const ofEveryPod = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
const counted = ['cpu', 'memory'];

/** No key tolerates every taint, whichever effect it has. */
const tolerated =
  ({ tolerations }: GuestRules) =>
  ({ key }: Toleration): boolean =>
    key ? ofEveryPod.includes(key) || matchesAny(tolerations, key) : tolerations.includes('*');

function larger(a: string | number, b: string | number | undefined): string | number {
  return b !== undefined && compareQuantities(a, b) < 0 ? b : a;
}

/** What the pod as a whole requests needs no request of a container. */
function filled(container: Container, pod: PodSpec, rules: GuestRules, enforcement: LimitsEnforcement): Container {
  const { requests = {}, limits = {} } = container.resources ?? {};
  const whole = { ...pod.resources?.limits, ...pod.resources?.requests };
  const missing = counted.flatMap((resource) => {
    const amount = limits[resource] ?? rules.defaultRequests[resource];
    return requests[resource] !== undefined || whole[resource] !== undefined || amount === undefined
      ? []
      : [[resource, String(amount)] as const];
  });
  const wanted = { ...requests, ...Object.fromEntries(missing) };
  // Under Hard a limit equals the request, also one that was filled in.
  const bounds: ResourceList = enforcement === 'Hard' ? Object.fromEntries(missing) : rules.defaultLimits;
  const added = Object.entries(bounds).flatMap(([resource, amount]) =>
    limits[resource] !== undefined || pod.resources?.limits?.[resource] !== undefined
      ? []
      : [[resource, String(larger(amount, wanted[resource]))] as const],
  );
  if (missing.length === 0 && added.length === 0) return container;
  const resources: Resources = {
    ...container.resources,
    ...(Object.keys(wanted).length > 0 && { requests: wanted }),
    ...((container.resources?.limits || added.length > 0) && { limits: { ...limits, ...Object.fromEntries(added) } }),
  };
  return { ...container, resources };
}

/** `enforcement`: that of the consumer's Quota. Without it (None) nothing is filled in. The same object comes back when nothing changes. */
export function guestSpec(spec: PodSpec, rules: GuestRules, enforcement: LimitsEnforcement): PodSpec {
  const { terminationGracePeriodSeconds: grace, tolerations } = spec;
  const kept = tolerations?.filter(tolerated(rules));
  const fill = (container: Container): Container =>
    enforcement === 'None' ? container : filled(container, spec, rules, enforcement);
  const containers = spec.containers.map(fill);
  const initContainers = spec.initContainers?.map(fill);
  const isSame = (before: readonly Container[] = [], after: readonly Container[] = []): boolean =>
    before.every((container, i) => container === after[i]);
  const tooLong = grace !== undefined && grace > rules.maxGracePeriodSeconds;
  if (
    !tooLong &&
    kept?.length === tolerations?.length &&
    isSame(spec.containers, containers) &&
    isSame(spec.initContainers, initContainers)
  )
    return spec;
  return {
    ...spec,
    containers,
    ...(initContainers && { initContainers }),
    ...(tooLong && { terminationGracePeriodSeconds: rules.maxGracePeriodSeconds }),
    ...(kept && { tolerations: kept }),
  };
}

/** What of the spec does not hold here, as sentences for its author. What is filled in is no news. */
export function limitations(spec: PodSpec, rules: GuestRules): string[] {
  const { terminationGracePeriodSeconds: grace, tolerations = [] } = spec;
  const cut =
    grace !== undefined && grace > rules.maxGracePeriodSeconds
      ? [
          `spec.pod.terminationGracePeriodSeconds is ${grace}: the provider ends the pod after ${rules.maxGracePeriodSeconds} (guests.maxGracePeriodSeconds of its PeeringPolicy)`,
        ]
      : [];
  const left = tolerations.filter((one) => !tolerated(rules)(one)).map(({ key }) => key || 'every key');
  const accepted = [...ofEveryPod, ...rules.tolerations].join(', ');
  return left.length === 0
    ? cut
    : [
        ...cut,
        `spec.pod.tolerations of ${left.join(', ')} have no effect at this provider: accepted are ${accepted} (guests.tolerations of its PeeringPolicy)`,
      ];
}
