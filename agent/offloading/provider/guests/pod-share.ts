/**
 * What containers get of the resources of their pod as a whole, under Hard enforcement. Each container is bounded by itself: an API server that does not know resources of whole
 * pods drops them, and a limit of the pod alone would be none. What the pod has for all of them is divided, so that neither their sum nor one of them is above it. Pure.
 */
import { roundDown } from '#shared/domain/capacity-share.ts';
import type { PodSpec } from '#shared/domain/kube-object.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { amountsOf, showAmount } from '#shared/domain/pod-resources.ts';

type Container = PodSpec['containers'][number];

const isSidecar = ({ restartPolicy }: Container): boolean => restartPolicy === 'Always';
const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((a, b) => a + b, 0n);

/**
 * Of `resource`, for a container of this pod that says nothing of its own. Containers and sidecars that say nothing get equal parts of what the others leave: the
 * containers and sidecars beside them, and each init container, which runs beside the sidecars before it. An init container that says nothing gets all that
 * sidecars leave. Undefined: nothing is left.
 */
export function shareOfPod(pod: PodSpec, container: Container, resource: string): string | undefined {
  const amountOf = (resources: Container['resources'] | undefined): bigint | undefined =>
    ownMember({ ...amountsOf(resources?.limits), ...amountsOf(resources?.requests) }, resource);
  const whole = amountOf(pod.resources ?? undefined) ?? 0n;
  const initial = pod.initContainers ?? [];
  const sidecars = initial.filter(isSidecar);
  const running = [...pod.containers, ...sidecars];
  const together = [
    running,
    ...initial.flatMap((one, i) => (isSidecar(one) ? [] : [[one, ...initial.slice(0, i).filter(isSidecar)]])),
  ];
  const parts = together.flatMap((beside) => {
    const silent = beside.filter((one) => running.includes(one) && amountOf(one.resources) === undefined);
    const free = whole - sum(beside.map(({ resources }) => amountOf(resources) ?? 0n));
    return silent.length === 0 ? [] : [free <= 0n ? 0n : roundDown(resource, free / BigInt(silent.length))];
  });
  const part = parts.reduce((a, b) => (a < b ? a : b), parts[0] ?? 0n);
  const isInitial = initial.includes(container) && !isSidecar(container);
  const share = isInitial ? whole - sum(sidecars.map(({ resources }) => amountOf(resources) ?? part)) : part;
  return share > 0n ? showAmount(resource, share) : undefined;
}

/** Of the pod as a whole: requests are limits, and limits requests, where only one of them is said. The same object where nothing is missing. */
export function evened(resources: NonNullable<PodSpec['resources']>): NonNullable<PodSpec['resources']> {
  const requests = resources.requests ?? {};
  const limits = resources.limits ?? {};
  const names = new Set([...Object.keys(requests), ...Object.keys(limits)]);
  if ([...names].every((name) => Object.hasOwn(requests, name) && Object.hasOwn(limits, name))) return resources;
  return { ...resources, requests: { ...limits, ...requests }, limits: { ...requests, ...limits } };
}
