/** The status of a local pod, from the status of its remote pod, or from its absence (docs/design/offloading.md#how-does-the-status-come-back). */

import { sameContent } from '#shared/domain/json-equality.ts';
import type { Pod, PodStatus } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';

type Condition = NonNullable<PodStatus['conditions']>[number];
type ContainerStatus = NonNullable<PodStatus['containerStatuses']>[number];

export const reason = {
  /** The namespace is not offloaded (yet); the pod never started. */
  backOff: 'OffloadingBackOff',
  /** The namespace stopped being offloaded while the pod ran. Final. */
  aborted: 'OffloadingAborted',
  /** The provider refused the pod; the message is the provider's. */
  refused: 'OffloadingRefused',
  /** The remote pod ended and is gone; its last status was not seen. */
  remoteTerminated: 'RemotePodTerminated',
  /** The remote pod was deleted at the provider and is not yet there again. */
  remoteMissing: 'RemotePodMissing',
  /** The provider does not answer. */
  remoteUnavailable: 'RemoteUnavailable',
} as const;

/** Which remote pod a local pod last saw, and the restarts of each container counted before it. */
export interface RemoteRecord {
  readonly uid: string;
  readonly restarts?: Readonly<Record<string, number>>;
}

/** Undefined when never recorded or unreadable. */
export function remoteRecordOf(local: Pod): RemoteRecord | undefined {
  const text = local.metadata.annotations?.[isthmusAnnotation.remotePod];
  if (text === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null && typeof (parsed as RemoteRecord).uid === 'string'
      ? (parsed as RemoteRecord)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The record to keep from now on: a new remote UID means that every container restarted once more. */
export function nextRecord(local: Pod, remoteUid: string): RemoteRecord {
  const known = remoteRecordOf(local);
  if (known === undefined) return { uid: remoteUid };
  if (known.uid === remoteUid) return known;
  const restarts = { ...known.restarts };
  const { containerStatuses = [], initContainerStatuses = [] } = local.status ?? {};
  for (const { name, restartCount } of [...containerStatuses, ...initContainerStatuses])
    restarts[name] = restartCount + 1;
  return { uid: remoteUid, restarts };
}

export interface HiddenAddress {
  /** `RangeTaken`: it is that of something in this cluster. `OutsideRanges`: the provider has no such range. `NoLink`: whose it is cannot be known. */
  readonly reason: 'RangeTaken' | 'OutsideRanges' | 'NoLink';
  /** For people. */
  readonly message: string;
}

export interface ReflectInput {
  readonly local: Pod;
  readonly remote: Pod;
  /** Address of the virtual node. */
  readonly hostIp: string;
  /** Of the remote pod, as this cluster reaches it; absent while it has none. */
  readonly podIp?: string | undefined;
  /** Why the address that it has there is not shown. */
  readonly hidden?: HiddenAddress | undefined;
  readonly restarts: Readonly<Record<string, number>>;
  /** False: the provider does not answer; the last known status is stale. */
  readonly available: boolean;
  readonly now: string;
}

/** Types of condition that controllers of the consumer set and that the remote kubelet does not know. */
const keptConditions: ReadonlySet<string> = new Set(['DisruptionTarget']);

function unready(conditions: readonly Condition[], known: readonly Condition[], why: string, now: string): Condition[] {
  const message = 'the remote pod cannot serve now';
  return conditions.map((condition) => {
    if (condition.type !== 'Ready' && condition.type !== 'ContainersReady') return condition;
    if (condition.status === 'False') return condition;
    const before = known.find((c) => c.type === condition.type && c.status === 'False' && c.reason === why);
    return {
      ...condition,
      status: 'False',
      reason: why,
      message,
      lastTransitionTime: before?.lastTransitionTime ?? now,
    } as Condition;
  });
}

/**
 * Readiness gates are judged here, as a kubelet does: controllers of this cluster set their conditions on this pod. `conditions`: all that the pod will
 * have.
 */
function gated(
  conditions: readonly Condition[],
  known: readonly Condition[],
  gates: readonly string[],
  now: string,
): Condition[] {
  const unmet = gates.filter((gate) => !conditions.some(({ type, status }) => type === gate && status === 'True'));
  return conditions.map((condition) => {
    if (gates.length === 0 || condition.type !== 'Ready' || condition.status !== 'True') return condition;
    const before = known.find(({ type }) => type === 'Ready');
    const status = unmet.length === 0 ? 'True' : 'False';
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now;
    if (unmet.length === 0) return { ...condition, lastTransitionTime } as Condition;
    const told = unmet.map((gate) =>
      conditions.some(({ type }) => type === gate)
        ? `the status of pod readiness gate "${gate}" is not "True"`
        : `corresponding condition of pod readiness gate "${gate}" does not exist.`,
    );
    return {
      ...condition,
      status,
      reason: 'ReadinessGatesNotReady',
      message: told.join(', '),
      lastTransitionTime,
    } as Condition;
  });
}

function withoutGeneration(condition: Condition): Condition {
  const { observedGeneration: _, ...rest } = condition as Condition & { observedGeneration?: number };
  return rest as Condition;
}

const hiddenAddressType = 'isthmus.dev/PodIPShown';

/** That `status.podIP` is left out although the pod has an address: no EndpointSlice of this cluster takes the pod then. */
function hiddenAddress(known: readonly Condition[], hidden: HiddenAddress, now: string): Condition {
  const before = known.find(({ type }) => type === hiddenAddressType);
  const lastTransitionTime = before?.lastTransitionTime ?? now;
  return { type: hiddenAddressType, status: 'False', ...hidden, lastTransitionTime } as Condition;
}

export const isAddressHidden = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type }) => type === hiddenAddressType) ?? false;

function counted(status: ContainerStatus, restarts: Readonly<Record<string, number>>): ContainerStatus {
  const before = ownMember(restarts, status.name) ?? 0;
  return before === 0 ? status : { ...status, restartCount: status.restartCount + before };
}

/** Is the remote pod being deleted at the provider while the local one stays? Then another will follow it. */
const isBeingReplaced = (local: Pod, remote: Pod): boolean =>
  remote.metadata.deletionTimestamp !== undefined &&
  local.metadata.deletionTimestamp === undefined &&
  remote.status?.phase !== 'Succeeded' &&
  remote.status?.phase !== 'Failed';

/** The remote status as the local pod's. Members that mean nothing here (generations, claims, nominations) are left out. */
export function reflectedStatus({ local, remote, hostIp, podIp, hidden, ...input }: ReflectInput): PodStatus {
  const known = local.status?.conditions ?? [];
  const { restarts, available, now } = input;
  // A container that may not restart cannot leave its terminated state here, so the end of a remote pod that will be replaced is not shown.
  if (isBeingReplaced(local, remote)) return withReadiness(local, reason.remoteMissing, now);
  const status = remote.status ?? {};
  const gates = (local.spec?.readinessGates ?? []).map(({ conditionType }) => conditionType);
  const isKept = ({ type }: Condition): boolean => keptConditions.has(type) || gates.includes(type);
  const all = [
    ...(hidden === undefined ? [] : [hiddenAddress(known, hidden, now)]),
    ...(status.conditions ?? []).map(withoutGeneration),
    ...known.filter((c) => isKept(c) && !status.conditions?.some((r) => r.type === c.type)),
  ];
  const conditions = gated(all, known, gates, now);
  return compact({
    phase: status.phase,
    conditions: available ? conditions : unready(conditions, known, reason.remoteUnavailable, now),
    reason: status.reason,
    message: status.message,
    startTime: status.startTime,
    qosClass: local.status?.qosClass,
    hostIP: hostIp,
    hostIPs: [{ ip: hostIp }],
    podIP: podIp,
    podIPs: podIp === undefined ? undefined : [{ ip: podIp }],
    initContainerStatuses: status.initContainerStatuses?.map((container) => counted(container, restarts)),
    containerStatuses: status.containerStatuses?.map((container) => counted(container, restarts)),
    ephemeralContainerStatuses: status.ephemeralContainerStatuses,
  });
}

/** The same status, not ready. */
export function withReadiness(local: Pod, why: string, now: string): PodStatus {
  const status = local.status ?? {};
  const conditions = status.conditions ?? [];
  return compact({ ...status, conditions: unready(conditions, conditions, why, now) });
}

/** The remote pod ended as `phase` and is gone: the containers' real ends are unknown. */
export const vanishedStatus = (local: Pod, phase: 'Succeeded' | 'Failed', now: string): PodStatus =>
  endedStatus(local, phase, reason.remoteTerminated, now);

/** As of a pod whose containers ended at `now`; what had ended before stays as it was. `why`: one of ours. */
function endedStatus(local: Pod, phase: 'Succeeded' | 'Failed', why: string, now: string): PodStatus {
  const status = local.status ?? {};
  const exitCode = phase === 'Succeeded' ? 0 : 1;
  const ended = (container: ContainerStatus): ContainerStatus =>
    container.state?.terminated
      ? container
      : ({
          ...container,
          ready: false,
          started: false,
          state: { terminated: { exitCode, reason: why, finishedAt: now } },
        } as ContainerStatus);
  return compact({
    ...status,
    phase,
    reason: why,
    conditions: status.conditions?.map((c) =>
      c.status === 'True' ? ({ ...c, status: 'False', reason: why, lastTransitionTime: now } as Condition) : c,
    ),
    initContainerStatuses: status.initContainerStatuses?.map(ended),
    containerStatuses: status.containerStatuses?.map(ended),
    ephemeralContainerStatuses: status.ephemeralContainerStatuses?.map(ended),
  });
}

/** `why`: one of ours; the message is what a user sees in `kubectl describe pod`. */
export function waitingStatus(local: Pod, why: string, message: string, now: string): PodStatus {
  const status = local.status ?? {};
  const known = status.conditions ?? [];
  const before = known.find((c) => c.type === 'Ready' && c.status === 'False');
  const ready = {
    type: 'Ready',
    status: 'False',
    reason: why,
    message,
    lastTransitionTime: before?.lastTransitionTime ?? now,
  };
  return compact({
    ...status,
    phase: 'Pending',
    reason: why,
    message,
    conditions: [...known.filter((c) => c.type !== 'Ready'), ready as Condition],
  });
}

/** This pod's remote part is taken away, although it had not ended: nothing of it runs any more. */
export const abortedStatus = (local: Pod, message: string, now: string): PodStatus => ({
  ...endedStatus(local, 'Failed', reason.aborted, now),
  message,
});

function compact(status: { readonly [K in keyof PodStatus]: PodStatus[K] | undefined }): PodStatus {
  return Object.fromEntries(Object.entries(status).filter(([, value]) => value !== undefined)) as PodStatus;
}

/** RFC 7386 patch from one status to the other, undefined when they say the same. Lists are replaced whole. */
export function statusPatch(have: PodStatus | undefined, want: PodStatus): Record<string, unknown> | undefined {
  const before = (have ?? {}) as Record<string, unknown>;
  const after = want as Record<string, unknown>;
  const patch: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (sameContent(before[key], after[key])) continue;
    patch[key] = after[key] ?? null;
  }
  return Object.keys(patch).length ? patch : undefined;
}
