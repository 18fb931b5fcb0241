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

/** For a container that says nothing of a resource. Undefined: nothing is left. */
export interface Share {
  readonly ofRunning: string | undefined;
  readonly ofInitial: string | undefined;
}

/** What some containers that run at the same time say they need, and how many of them say nothing. */
interface Together {
  readonly said: bigint;
  readonly silent: number;
}

/**
 * Of `resource`, for the containers of this pod that say nothing of their own. Containers and sidecars get equal parts of what the others leave: the
 * containers and sidecars beside them, and each init container, which runs beside the sidecars before it. An init container gets all that sidecars leave.
 */
export function shareOfPod(pod: PodSpec, resource: string): Share {
  const amountOf = (resources: Container['resources'] | undefined): bigint | undefined =>
    ownMember({ ...amountsOf(resources?.limits), ...amountsOf(resources?.requests) }, resource);
  const whole = amountOf(pod.resources ?? undefined) ?? 0n;
  const beside = ({ said, silent }: Together, { resources }: Container): Together => {
    const amount = amountOf(resources);
    return amount === undefined ? { said, silent: silent + 1 } : { said: said + amount, silent };
  };
  const partOf = ({ said, silent }: Together): bigint =>
    whole > said ? roundDown(resource, (whole - said) / BigInt(silent)) : 0n;
  let sidecars: Together = { said: 0n, silent: 0 };
  let part: bigint | undefined;
  const atMost = (together: Together): void => {
    if (together.silent === 0) return;
    const other = partOf(together);
    part = part === undefined || other < part ? other : part;
  };
  for (const one of pod.initContainers ?? []) {
    if (isSidecar(one)) sidecars = beside(sidecars, one);
    else atMost({ ...sidecars, said: sidecars.said + (amountOf(one.resources) ?? 0n) });
  }
  atMost(pod.containers.reduce(beside, sidecars));
  const shown = (share: bigint): string | undefined => (share > 0n ? showAmount(resource, share) : undefined);
  const ofSidecars = sidecars.said + BigInt(sidecars.silent) * (part ?? 0n);
  return { ofRunning: shown(part ?? 0n), ofInitial: shown(whole - ofSidecars) };
}

export const shareFor = ({ ofRunning, ofInitial }: Share, container: Container, isInit: boolean): string | undefined =>
  isInit && !isSidecar(container) ? ofInitial : ofRunning;

/** Of the pod as a whole: requests are limits, and limits requests, where only one of them is said. The same object where nothing is missing. */
export function evened(resources: NonNullable<PodSpec['resources']>): NonNullable<PodSpec['resources']> {
  const requests = resources.requests ?? {};
  const limits = resources.limits ?? {};
  const names = new Set([...Object.keys(requests), ...Object.keys(limits)]);
  if ([...names].every((name) => Object.hasOwn(requests, name) && Object.hasOwn(limits, name))) return resources;
  return { ...resources, requests: { ...limits, ...requests }, limits: { ...requests, ...limits } };
}
