/** What one local pod bound to a virtual node needs next: life-cycle rules of docs/design/offloading.md#what-happens-to-a-pod-in-order, in their order. Pure. */
import { isOutside, type RemoteRanges, reachedAt, takenBy } from '#agent/network/addresses/remote-address.ts';
import type { HomeApi } from '#agent/reflection/model/api-access.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import type { Pod, PodStatus } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import type { OffloadingPatch } from '#shared/schema/liqo/virtual-node.ts';
import { type JsonOperation, mutableOperations, mutableSpec } from './mutable-spec.ts';
import {
  abortedStatus,
  type HiddenAddress,
  isAddressHidden,
  nextRecord,
  type RemoteRecord,
  reason,
  reflectedStatus,
  remoteRecordOf,
  statusPatch,
  vanishedStatus,
  waitingStatus,
  withReadiness,
} from './pod-status.ts';
import { debugContainersOf, shadowMetadata } from './shadow-pod-object.ts';

export type Mapping =
  /** The namespace exists at the provider and is ours. */
  | { readonly kind: 'accepted'; readonly remoteNamespace: string }
  /** Wanted, but not (or no longer) there; `why` for the user. Nothing is started and nothing aborted. */
  | { readonly kind: 'held'; readonly why: string }
  | { readonly kind: 'none' };

export interface Observed {
  readonly local?: Pod | undefined;
  readonly shadow?: ShadowPod | undefined;
  readonly remote?: Pod | undefined;
  readonly mapping: Mapping;
  /** False while the Node is not Ready: its pods are marked and taken out of Services. */
  readonly nodeReady: boolean;
}

export interface Context {
  readonly consumer: string;
  readonly provider: string;
  readonly nodeName: string;
  readonly patch?: OffloadingPatch | undefined;
  readonly home?: HomeApi | undefined;
  readonly hostIp: string;
  /** Of the provider, and what they are called here. */
  readonly remoteRanges: RemoteRanges;
  /** Default true; false: local pods show no address. */
  readonly showsAddresses?: boolean;
  /** Whether there is a link to the provider. */
  readonly isLinked: boolean;
  /** RFC 3339. */
  readonly now: string;
}

/** Null: not to be there. */
type Labels = Readonly<Record<string, string | null>>;

export type Action =
  | { readonly do: 'createShadow' }
  | { readonly do: 'deleteShadow'; readonly uid: string }
  | { readonly do: 'updateShadow'; readonly uid: string; readonly patch: readonly JsonOperation[] }
  | { readonly do: 'label'; readonly labels: Labels }
  | {
      readonly do: 'status';
      readonly patch: Record<string, unknown>;
      readonly record?: RemoteRecord;
      readonly labels?: Labels;
    }
  /** Nothing more is done while the provider, read directly, still has the remote pod: the caches of different kinds may lag behind each other. */
  | { readonly do: 'makeSureItEnded' }
  | { readonly do: 'removeLocal' }
  | { readonly do: 'event'; readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string };

export function decide(observed: Observed, context: Context): readonly Action[] {
  const { local, shadow, mapping } = observed;
  if (!local) return deleting(shadow);
  if (local.metadata.deletionTimestamp !== undefined) return terminating(observed, local, context);
  if (isAborted(local)) return deleting(shadow);
  if (mapping.kind === 'accepted') return offloaded(observed, local, context);
  if (mapping.kind === 'held') return held(local, mapping.why, context);
  return notOffloaded(local, context);
}

const deleting = (shadow: ShadowPod | undefined): readonly Action[] =>
  shadow && shadow.metadata.deletionTimestamp === undefined ? [{ do: 'deleteShadow', uid: uidOf(shadow) }] : [];

const uidOf = (object: { metadata: { uid?: string } }): string => object.metadata.uid ?? '';
const isTerminal = (pod: Pod): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
const isAborted = (pod: Pod): boolean => pod.status?.phase === 'Failed' && pod.status.reason === reason.aborted;

/** Does the object at the provider belong to this incarnation of the local pod? Objects without our mark are Liqo's, from before a migration. */
export function standsFor(remote: { metadata: { annotations?: Record<string, string> } }, local: Pod): boolean {
  const stamped = remote.metadata.annotations?.[isthmusAnnotation.localPodUid];
  return stamped === undefined || stamped === local.metadata.uid;
}

const remotePodOf = ({ remote, shadow }: Observed, local: Pod): Pod | undefined => {
  if (!remote || !standsFor(remote, local)) return undefined;
  const owner = remote.metadata.ownerReferences?.find((o) => o.controller);
  // A pod left by a ShadowPod that was replaced is on its way out: its end is not this pod's.
  return shadow && owner && owner.uid !== shadow.metadata.uid ? undefined : remote;
};

function terminating(observed: Observed, local: Pod, context: Context): readonly Action[] {
  const remotePod = remotePodOf(observed, local);
  if (!observed.shadow && !remotePod) {
    // A controller that holds a finalizer (the Job controller does) waits for a final phase, and no kubelet will write one any more.
    const owed = local.metadata.finalizers?.length && !isTerminal(local);
    const failed = owed ? writeStatus(local, vanishedStatus(local, 'Failed', context.now)) : [];
    return [{ do: 'makeSureItEnded' }, ...failed, { do: 'removeLocal' }];
  }
  return [...deleting(observed.shadow), ...(remotePod ? reflect(local, remotePod, observed.nodeReady, context) : [])];
}

function offloaded(observed: Observed, local: Pod, context: Context): readonly Action[] {
  const { shadow, nodeReady } = observed;
  const remotePod = remotePodOf(observed, local);
  if (isTerminal(local) && (!remotePod || remotePod.status?.phase === local.status?.phase)) return [];
  if (shadow && !standsFor(shadow, local)) return deleting(shadow);
  if (!shadow) return [{ do: 'createShadow' }, ...labelled(local, nodeReady, absent(observed, local, context))];
  const terminal = shadow.status?.phase;
  const status = remotePod
    ? reflect(local, remotePod, nodeReady, context)
    : terminal === 'Succeeded' || terminal === 'Failed'
      ? writeStatus(local, vanishedStatus(local, terminal, context.now))
      : absent(observed, local, context);
  return [...(nodeReady ? updating(shadow, local, context) : []), ...labelled(local, nodeReady, status)];
}

/** The remote pod is not there (yet, or again): a pod that served until now must not be sent traffic. */
function absent({ nodeReady, shadow }: Observed, local: Pod, { now, provider }: Context): readonly Action[] {
  const { reason: refusal, message } = shadow?.status ?? {};
  if (nodeReady && refusal !== undefined && !local.status?.containerStatuses?.length) {
    const said = `cluster ${provider} cannot run the pod (${refusal}): ${message ?? 'it does not say more'}`;
    const writes = writeStatus(local, waitingStatus(local, reason.refused, said, now));
    return writes.length
      ? [...writes, { do: 'event', type: 'Warning', reason: 'FailedReflection', message: said }]
      : [];
  }
  const why = nodeReady ? reason.remoteMissing : reason.remoteUnavailable;
  return local.status?.conditions ? writeStatus(local, withReadiness(local, why, now)) : [];
}

/** That a pod is offloaded is noted together with its first status, in one write; that it is cut off (or no longer is), at once. */
function labelled(local: Pod, nodeReady: boolean, actions: readonly Action[]): readonly Action[] {
  const has = local.metadata.labels ?? {};
  const labels: Record<string, string | null> = {};
  if (!nodeReady && has[label.remoteUnavailable] !== 'true') labels[label.remoteUnavailable] = 'true';
  if (nodeReady && Object.hasOwn(has, label.remoteUnavailable)) labels[label.remoteUnavailable] = null;
  const isUrgent = Object.keys(labels).length > 0 || local.status?.containerStatuses !== undefined;
  if (has[label.shadowPod] !== 'true') labels[label.shadowPod] = 'true';
  if (Object.keys(labels).length === 0) return actions;
  if (!actions.some((action) => action.do === 'status'))
    return isUrgent ? [{ do: 'label', labels }, ...actions] : actions;
  return actions.map((action) => (action.do === 'status' ? { ...action, labels } : action));
}

/** No kubelet has seen the remote pod yet, so its status adds nothing: at most that it is bound to a node. */
function addsNothing(local: Pod, { metadata, status }: Pod): boolean {
  if (status?.phase !== 'Pending' || local.status?.reason) return false;
  const { conditions, containerStatuses, reason: why } = status;
  if (!conditions) return true;
  if (why !== undefined || containerStatuses?.length || metadata.deletionTimestamp !== undefined) return false;
  // An earlier container status shows that the pod is being started again.
  if (local.status?.containerStatuses?.length) return false;
  return conditions.every(({ type, status: value }) => type === 'PodScheduled' && value === 'True');
}

function reflect(local: Pod, remote: Pod, nodeReady: boolean, context: Context): readonly Action[] {
  if (addsNothing(local, remote)) return [];
  const record = nextRecord(local, uidOf(remote));
  const restarts = record.restarts ?? {};
  const { hostIp, now } = context;
  const real = context.showsAddresses === false ? undefined : remote.status?.podIP;
  const podIp = real === undefined ? undefined : reachedAt(context.remoteRanges, real);
  const hidden = real === undefined ? undefined : whyHidden(real, context);
  const status = reflectedStatus({ local, remote, hostIp, podIp, hidden, restarts, available: nodeReady, now });
  const writes = writeStatus(local, status, sameContent(record, remoteRecordOf(local)) ? undefined : record);
  if (hidden === undefined || hidden.reason === 'NoLink' || isAddressHidden(local) || !writes.length) return writes;
  return [...writes, { do: 'event', type: 'Warning', reason: 'PodIPHidden', message: hidden.message }];
}

/** A Service here that had this address among its endpoints would send to another workload: the provider can say any. */
function whyHidden(real: string, { provider, remoteRanges, isLinked }: Context): HiddenAddress | undefined {
  const has = `the pod has ${real} at cluster ${provider}`;
  const therefore = 'status.podIP is left out, and Services here do not send to the pod';
  const taken = takenBy(remoteRanges, real);
  if (taken !== undefined)
    return {
      reason: 'RangeTaken',
      message: `${has}, which is in ${taken.range} of this cluster (${taken.holder}), and there is no link to ${provider}: ${therefore}; peer with a network, or reach it by a Service of ${provider}`,
    };
  if (!isOutside(remoteRanges, real)) return undefined;
  if (isLinked)
    return {
      reason: 'OutsideRanges',
      message: `${has}, which is in none of its ranges (${remoteRanges.map((one) => one.real).join(', ')}): ${therefore}`,
    };
  return {
    reason: 'NoLink',
    message: `${has}, and there is no link to ${provider}: ${therefore}; peer with a network, or, where the networks of both clusters are one, put its range into spec.network.remoteCidrs of a PeeringPolicy`,
  };
}

function writeStatus(local: Pod, want: PodStatus, record?: RemoteRecord): readonly Action[] {
  const patch = statusPatch(local.status, want);
  if (!patch && !record) return [];
  return [{ do: 'status', patch: patch ?? {}, ...(record ? { record } : {}) }];
}

function updating(shadow: ShadowPod, local: Pod, context: Context): readonly Action[] {
  if (shadow.metadata.deletionTimestamp !== undefined) return [];
  const want = shadowMetadata({ ...context, pod: local, remoteNamespace: shadow.metadata.namespace ?? '' });
  const patch = [
    ...mapOperations('/metadata/labels', shadow.metadata.labels, want.labels, [label.creatorUser]),
    ...mapOperations('/metadata/annotations', shadow.metadata.annotations, want.annotations, []),
    ...(local.spec
      ? mutableOperations(
          mutableSpec(shadow.spec.pod),
          mutableSpec(
            { ...local.spec, ephemeralContainers: debugContainersOf({ ...context, pod: local }) },
            context.patch,
          ),
        )
      : []),
  ];
  const test: JsonOperation = { op: 'test', path: '/metadata/uid', value: uidOf(shadow) };
  return patch.length ? [{ do: 'updateShadow', uid: uidOf(shadow), patch: [test, ...patch] }] : [];
}

type Texts = Readonly<Record<string, string>>;
const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');

function mapOperations(
  path: string,
  have: Texts | undefined,
  want: Texts,
  foreign: readonly string[],
): JsonOperation[] {
  if (!have) return Object.keys(want).length ? [{ op: 'add', path, value: want }] : [];
  return [
    ...Object.keys(have)
      .filter((key) => !Object.hasOwn(want, key) && !foreign.includes(key))
      .map((key): JsonOperation => ({ op: 'remove', path: `${path}/${escaped(key)}` })),
    ...Object.entries(want)
      .filter(([key, value]) => have[key] !== value)
      .map(([key, value]): JsonOperation => ({ op: 'add', path: `${path}/${escaped(key)}`, value })),
  ];
}

function held(local: Pod, why: string, { now }: Context): readonly Action[] {
  if (isTerminal(local) || local.status?.containerStatuses?.length) return [];
  return writeStatus(local, waitingStatus(local, reason.backOff, why, now));
}

/** The fallback for pods whose namespace is not offloaded: wait when it never ran, give up when it did. */
function notOffloaded(local: Pod, { now, nodeName }: Context): readonly Action[] {
  if (isTerminal(local)) return [];
  const { namespace } = local.metadata;
  const hint =
    'If it belongs to a DaemonSet, keep that off virtual nodes: they carry the label liqo.io/type=virtual-node.';
  const fresh = (local.status?.phase ?? 'Pending') === 'Pending' && !local.status?.containerStatuses?.length;
  const message = fresh
    ? `namespace ${namespace} is not offloaded to node ${nodeName}; offload it, or schedule the pod elsewhere`
    : `namespace ${namespace} is no longer offloaded to node ${nodeName}`;
  const want = fresh ? waitingStatus(local, reason.backOff, message, now) : abortedStatus(local, message, now);
  const writes = writeStatus(local, want);
  if (!writes.length) return [];
  return [...writes, { do: 'event', type: 'Warning', reason: 'ReflectionDisabled', message: `${message}. ${hint}` }];
}
