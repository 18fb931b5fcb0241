/** What becomes of a guest's pod spec by the rules of its provider: what is cut, left out and filled in, and what that is called. Pure. */

import { matchesAny } from '#shared/domain/key-patterns.ts';
import type { PodSpec } from '#shared/domain/kube-object.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { compareQuantities } from '#shared/domain/quantity.ts';
import type { LimitsEnforcement, ResourceList } from '#shared/schema/definition/fields.ts';
import type { GuestRules } from './decide.ts';
import { isForNodes } from './node-annotations.ts';
import { evened, type Share, shareFor, shareOfPod } from './pod-share.ts';
import { settingText } from './refusal-text.ts';

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

const isZero = (amounts: ResourceList | null | undefined, resource: string): boolean => {
  const amount = ownMember(amounts ?? {}, resource);
  return amount !== undefined && compareQuantities(amount, '0') === 0;
};

/**
 * Without requests and limits of 0 for cpu and memory: neither the kernel nor the QoS classes tell them from absent ones, and a pod would take a node for nothing. The same object
 * where there are none.
 */
function withoutZeros<T extends { readonly resources?: Resources | null }>(owner: T): T {
  const { requests, limits } = owner.resources ?? {};
  const without = (amounts: ResourceList | null | undefined) =>
    Object.fromEntries(
      Object.entries(amounts ?? {}).filter(([name]) => !counted.includes(name) || !isZero(amounts, name)),
    );
  if (!counted.some((resource) => isZero(requests, resource) || isZero(limits, resource))) return owner;
  return {
    ...owner,
    resources: {
      ...owner.resources,
      ...(requests && { requests: without(requests) }),
      ...(limits && { limits: without(limits) }),
    },
  };
}

interface Filling {
  readonly pod: PodSpec;
  /** By resource: once for the pod, which may have thousands of containers. */
  readonly shares: ReadonlyMap<string, Share>;
  readonly rules: GuestRules;
  readonly enforcement: LimitsEnforcement;
}

/** What the pod as a whole requests needs no request of a container, but under Hard, where each gets a part of it. */
function filled(container: Container, isInit: boolean, { pod, shares, rules, enforcement }: Filling): Container {
  // Go clients send `null` for what is not set.
  const requests = container.resources?.requests ?? {};
  const limits = container.resources?.limits ?? {};
  const isHard = enforcement === 'Hard';
  const whole = { ...pod.resources?.limits, ...pod.resources?.requests };
  const amountFor = (resource: string) => {
    const isOfPod = ownMember(whole, resource) !== undefined;
    if (isOfPod && !isHard) return undefined;
    const share = shares.get(resource);
    const amount = isOfPod ? share && shareFor(share, container, isInit) : ownMember(rules.defaultRequests, resource);
    return ownMember(limits, resource) ?? amount;
  };
  const missing = counted.flatMap((resource) => {
    const amount = ownMember(requests, resource) === undefined ? amountFor(resource) : undefined;
    return amount === undefined ? [] : [[resource, String(amount)] as const];
  });
  const wanted = { ...requests, ...Object.fromEntries(missing) };
  // Under Hard a limit equals the request, also one that was filled in.
  const bounds: ResourceList = isHard ? Object.fromEntries(missing) : rules.defaultLimits;
  const added = Object.entries(bounds).flatMap(([resource, amount]) =>
    ownMember(limits, resource) !== undefined || (!isHard && ownMember(pod.resources?.limits, resource) !== undefined)
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
  const isFilled = enforcement !== 'None';
  const asked = isFilled
    ? {
        ...withoutZeros(spec),
        containers: spec.containers.map(withoutZeros),
        ...(spec.initContainers && { initContainers: spec.initContainers.map(withoutZeros) }),
      }
    : spec;
  const shares = new Map(
    enforcement === 'Hard' && asked.resources
      ? counted.map((resource) => [resource, shareOfPod(asked, resource)] as const)
      : [],
  );
  const filling: Filling = { pod: asked, shares, rules, enforcement };
  const fill = (isInit: boolean) => (container: Container) =>
    isFilled ? filled(container, isInit, filling) : container;
  const containers = asked.containers.map(fill(false));
  const initContainers = asked.initContainers?.map(fill(true));
  const resources = enforcement === 'Hard' && asked.resources ? evened(asked.resources) : asked.resources;
  const isSame = (before: readonly Container[] | undefined, after: readonly Container[] | undefined): boolean =>
    before == null || before.every((container, i) => container === after?.[i]);
  const tooLong = grace !== undefined && grace > rules.maxGracePeriodSeconds;
  if (
    !tooLong &&
    resources === spec.resources &&
    kept?.length === tolerations?.length &&
    isSame(spec.containers, containers) &&
    isSame(spec.initContainers, initContainers)
  )
    return spec;
  return {
    ...spec,
    containers,
    ...(resources && { resources }),
    ...(initContainers && { initContainers }),
    ...(tooLong && { terminationGracePeriodSeconds: rules.maxGracePeriodSeconds }),
    ...(kept && { tolerations: kept }),
  };
}

type Texts = Readonly<Record<string, string>>;
const isLeftOut = ({ nodeAnnotations }: GuestRules, key: string): boolean =>
  isForNodes(key) && !matchesAny(nodeAnnotations, key);

/** The annotations that a guest's pod gets; the same object when that is all. */
export function guestAnnotations(annotations: Texts, rules: GuestRules): Texts {
  const kept = Object.entries(annotations).filter(([key]) => !isLeftOut(rules, key));
  return kept.length === Object.keys(annotations).length ? annotations : Object.fromEntries(kept);
}

const named = 5;
/** However many a hostile client sends, the answer stays short. */
const some = (names: readonly string[]): string =>
  [
    ...names.slice(0, named).map((one) => one.slice(0, 100)),
    ...(names.length > named ? [`${names.length - named} more`] : []),
  ].join(', ');

/** What of the pod does not hold here, as sentences for its author. What is filled in is no news. */
export function limitations(spec: PodSpec, annotations: Texts, rules: GuestRules): string[] {
  const { terminationGracePeriodSeconds: grace, tolerations } = spec;
  const said: string[] = [];
  if (grace !== undefined && grace > rules.maxGracePeriodSeconds)
    said.push(
      `spec.pod.terminationGracePeriodSeconds is ${grace}: the provider ends the pod after ${rules.maxGracePeriodSeconds} ${settingText('maxGracePeriodSeconds')}`,
    );
  const obeyed = Object.keys(annotations).filter((key) => isLeftOut(rules, key));
  if (obeyed.length > 0)
    said.push(
      `metadata.annotations ${some(obeyed)} are left out: nodes of the provider would obey them; accepted: ${rules.nodeAnnotations.join(', ') || 'none'} ${settingText('nodeAnnotations')}`,
    );
  const open = (tolerations ?? []).filter((one) => !tolerated(rules)(one)).map(({ key }) => key || 'every key');
  if (open.length > 0)
    said.push(
      `spec.pod.tolerations of ${some(open)} have no effect at this provider: accepted are ${[...ofEveryPod, ...rules.tolerations].join(', ')} ${settingText('tolerations')}`,
    );
  return said;
}
