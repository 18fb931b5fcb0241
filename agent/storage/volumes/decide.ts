/**
 * What a volume of ours needs next: the end that its reclaim policy says, growth, and what its claim says of the other side. The data goes only
 * when the volume is over and its policy is Delete; the claim behind it is first marked as one whose data may go. Of a volume that is deleted with
 * policy Retain, the cluster that has the data gets a RetainedVolume. Pure.
 */
import { type Condition, type ConditionInput, removeCondition, setCondition } from '#kube/writes/conditions.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { type ReclaimPolicy, storageAnnotation, storageData, volumeFinalizer } from '#shared/domain/storage-keys.ts';
import { remoteOf } from '#shared/domain/volumes.ts';
import { amountOf, requestOf } from '../model/claims.ts';

type Claim = PersistentVolumeClaim;

export type RealClaim =
  | { readonly kind: 'there'; readonly object: Claim }
  /** `why`, and for a provider, whether it keeps what was there: its namespace or the whole peering has ended. */
  | { readonly kind: 'gone'; readonly why: string; readonly kept?: boolean }
  | { readonly kind: 'unknown'; readonly why: string };

export interface Observed {
  readonly volume: PersistentVolume;
  /** The claim that the volume is for, by UID. */
  readonly home?: Claim | undefined;
  readonly real: RealClaim;
  /** Of a volume in this cluster: the one behind it. */
  readonly source?: PersistentVolume | undefined;
  /** Of a volume at a provider: whether the provider answers. */
  readonly reachable: boolean;
  readonly nowMs: number;
}

export type Action =
  | { readonly do: 'mark'; readonly claim: Claim; readonly annotations: Readonly<Record<string, string>> }
  /** Its data is kept when it goes: what keeps data of guests at their provider keeps that of this real claim here. */
  | { readonly do: 'guard'; readonly claim: Claim }
  | { readonly do: 'erase'; readonly claim: Claim }
  /** The volume goes, and nothing holds it any more. */
  | { readonly do: 'finish' }
  | { readonly do: 'release' }
  /** Nothing holds it: the agent was taken out of the cluster meanwhile. */
  | { readonly do: 'hold' }
  | { readonly do: 'grow'; readonly claim: Claim; readonly storage: string }
  | { readonly do: 'capacity'; readonly storage: string }
  | { readonly do: 'status'; readonly patch: Readonly<Record<string, unknown>> }
  | { readonly do: 'tell'; readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string }
  | { readonly do: 'wait'; readonly on: string };

/** What no later look takes back: the data is ordered to go, or nothing of this cluster stands for it any more. */
export const isFinal = (action: Action): boolean =>
  action.do === 'erase' ||
  action.do === 'finish' ||
  action.do === 'release' ||
  (action.do === 'mark' && action.annotations[storageAnnotation.data] === storageData.delete);

const remoteBound = 'isthmus.dev/RemoteBound';
const reachable = 'isthmus.dev/Reachable';

/** `Recycle` is no policy that a provisioner keeps: the data stays. */
const policyOf = ({ spec }: PersistentVolume): ReclaimPolicy =>
  spec?.persistentVolumeReclaimPolicy === 'Delete' ? 'Delete' : 'Retain';

export function decide(observed: Observed): readonly Action[] {
  const { volume, home } = observed;
  const { metadata, status } = volume;
  const held = metadata.finalizers?.includes(volumeFinalizer) ?? false;
  const isGoing = metadata.deletionTimestamp !== undefined;
  if (isGoing && !held) return [];
  const isOver = status?.phase === 'Released' || status?.phase === 'Failed' || (isGoing && status?.phase !== 'Bound');
  if (isOver) return policyOf(volume) === 'Delete' ? ending(observed) : isGoing ? keeping(observed) : policy(observed);
  const hold: readonly Action[] = held ? [] : [{ do: 'hold' }];
  return [...hold, ...policy(observed), ...(home ? [...told(observed, home), ...growth(observed, home)] : [])];
}

function ending({ real }: Observed): readonly Action[] {
  switch (real.kind) {
    case 'unknown':
      return [{ do: 'wait', on: real.why }];
    case 'gone':
      return [
        ...(real.kept
          ? [{ do: 'tell', type: 'Warning', reason: 'DataKeptAtProvider', message: real.why } as const]
          : []),
        { do: 'finish' },
      ];
    case 'there': {
      const { object } = real;
      const at = `${object.metadata.namespace}/${object.metadata.name}`;
      if (object.metadata.deletionTimestamp !== undefined) return [{ do: 'wait', on: `the real claim ${at} to go` }];
      // A volume that was retained for a while says so no more.
      const marks = { [storageAnnotation.data]: storageData.delete, [storageAnnotation.reclaimPolicy]: 'Delete' };
      const isMarked = Object.entries(marks).every(([key, value]) => object.metadata.annotations?.[key] === value);
      return [
        ...(isMarked ? [] : [{ do: 'mark', claim: object, annotations: marks } as const]),
        { do: 'erase', claim: object },
      ];
    }
  }
}

/** Deleted with policy Retain: the real claim goes without the order to delete its data, which becomes a RetainedVolume where it is. */
function keeping(observed: Observed): readonly Action[] {
  const { real, volume } = observed;
  if (real.kind === 'unknown') return [{ do: 'wait', on: real.why }];
  if (real.kind === 'gone') return [{ do: 'release' }];
  const { object } = real;
  const { namespace, name, deletionTimestamp, finalizers } = object.metadata;
  if (deletionTimestamp !== undefined) return [{ do: 'wait', on: `the real claim ${namespace}/${name} to go` }];
  if (finalizers?.includes(guestVolume.finalizer)) return [...policy(observed), { do: 'erase', claim: object }];
  // A provider that makes no such records would delete the data with its claim: there the claim stays.
  return remoteOf(volume) === undefined ? [{ do: 'guard', claim: object }] : [{ do: 'release' }];
}

/** The provider keeps real volumes by it. */
function policy({ volume, real }: Observed): readonly Action[] {
  if (real.kind !== 'there') return [];
  const wanted = policyOf(volume);
  if (real.object.metadata.annotations?.[storageAnnotation.reclaimPolicy] === wanted) return [];
  return [{ do: 'mark', claim: real.object, annotations: { [storageAnnotation.reclaimPolicy]: wanted } }];
}

const sizeOf = (claim: Claim): bigint => amountOf(claim.spec?.resources?.requests);

/** The real claim, then the volume; what the claim says of it is in `statusOf`. */
function growth({ volume, real, source }: Observed, home: Claim): readonly Action[] {
  if (real.kind !== 'there' || volume.status?.phase !== 'Bound') return [];
  const wanted = sizeOf(home);
  const isLarge = wanted <= amountOf(volume.spec?.capacity);
  // In this cluster the resizer of its driver may have grown the volume of ours as one of its own: the real claim follows.
  if (isLarge && (source === undefined || amountOf(real.object.status?.capacity) >= wanted)) return [];
  // An API server lets no claim grow that has no volume yet.
  if (real.object.status?.phase !== 'Bound') return [];
  if (sizeOf(real.object) < wanted) return [{ do: 'grow', claim: real.object, storage: requestOf(home) }];
  // Of a volume in this cluster the kubelet here grows the file system, as soon as the volume says that it is larger.
  const has = source ? source.spec?.capacity : real.object.status?.capacity;
  const grows = !isLarge && amountOf(has) >= wanted;
  return grows ? [{ do: 'capacity', storage: has?.storage ?? requestOf(home) }] : [];
}

function told(observed: Observed, home: Claim): readonly Action[] {
  const before = (home.status?.conditions ?? []) as readonly Condition[];
  const { nowMs, volume, real } = observed;
  const remote = remoteOf(volume) !== undefined;
  const bound = remote ? boundness(observed) : undefined;
  const answers = remote && !observed.reachable ? unreachableCondition(observed) : undefined;
  const grown = capacityNow(observed, home);
  const size = grown === undefined ? sizeCondition(observed, home) : undefined;
  let conditions = before;
  const put = (type: string, input: ConditionInput | undefined): void => {
    conditions = input ? setCondition(conditions, input, nowMs) : removeCondition(conditions, type);
  };
  if (bound || !remote) put(remoteBound, bound);
  put(reachable, answers);
  // The kubelet of this cluster writes such conditions as well.
  const ours = before.filter(({ reason }) => reason === waitsForClaim || reason === waitsForKubelet);
  for (const { type } of ours) if (type !== size?.type) put(type, undefined);
  if (size) put(size.type, size);
  const changed = conditions !== before;
  const allocation = allocationNow(observed, home, size);
  const isLost = remote && real.kind === 'gone' && bound !== undefined && changed;
  return [
    ...(changed || grown || allocation
      ? [
          {
            do: 'status',
            patch: {
              ...(changed && { conditions }),
              ...(grown && { capacity: { storage: grown } }),
              ...allocation,
            },
          } as const,
        ]
      : []),
    ...(isLost ? [{ do: 'tell', type: 'Warning', reason: 'RemoteLost', message: bound.message } as const] : []),
  ];
}

function boundness({ volume, real }: Observed): ConditionInput | undefined {
  const at = remoteOf(volume);
  if (!at) return undefined;
  const where = `claim ${at.namespace}/${at.name} at cluster ${at.provider}`;
  if (real.kind === 'unknown') return undefined;
  if (real.kind === 'gone')
    return {
      type: remoteBound,
      status: 'False',
      reason: 'RemoteLost',
      message: `${where} is gone (${real.why}); it is never made again empty`,
    };
  const { status, spec } = real.object;
  const ofClass = `StorageClass ${spec?.storageClassName ?? 'by default'}`;
  switch (status?.phase) {
    case 'Bound':
      return {
        type: remoteBound,
        status: 'True',
        reason: 'Bound',
        message: `${where} has volume ${spec?.volumeName} of ${ofClass}`,
      };
    case 'Lost':
      return {
        type: remoteBound,
        status: 'False',
        reason: 'Lost',
        message: `${where} has lost volume ${spec?.volumeName}`,
      };
    default:
      return {
        type: remoteBound,
        status: 'False',
        reason: 'Pending',
        message: `${where} waits for a volume of ${ofClass}, which most classes make when the pod gets there; events of the claim say more`,
      };
  }
}

const unreachableCondition = ({ volume }: Observed): ConditionInput => ({
  type: reachable,
  status: 'False',
  reason: 'ProviderDoesNotAnswer',
  message: `cluster ${remoteOf(volume)?.provider}, which has the data, does not answer; it stays there`,
});

const waitsForClaim = 'WaitingForRealClaim';
const waitsForKubelet = 'WaitingForKubelet';

/** Undefined: the claim has what it asks for. */
function sizeCondition({ volume, real, source }: Observed, home: Claim): ConditionInput | undefined {
  if (volume.status?.phase !== 'Bound' || sizeOf(home) <= amountOf(home.status?.capacity)) return undefined;
  // A claim that is being bound has no size yet, and does not grow.
  if (real.kind !== 'there' || home.status?.capacity?.storage === undefined) return undefined;
  const waits = amountOf(volume.spec?.capacity) >= sizeOf(home);
  if (source && waits)
    return {
      type: 'FileSystemResizePending',
      status: 'True',
      reason: waitsForKubelet,
      message: 'the volume has grown; the kubelet grows the file system when a pod mounts it',
    };
  const { namespace, name } = real.object.metadata;
  return {
    type: 'Resizing',
    status: 'True',
    reason: waitsForClaim,
    message: `claim ${namespace}/${name} ${remoteOf(volume) ? `at cluster ${remoteOf(volume)?.provider} ` : ''}is to grow to ${requestOf(home)}`,
  };
}

const controllerResizes = 'ControllerResizeInProgress';
const kubeletIsDue = 'NodeResizePending';
const kubeletResizes = 'NodeResizeInProgress';

/**
 * What a claim that grows says was asked for it, and whose turn it is, as Kubernetes' own resizer does: quotas count the first, and a kubelet grows the file
 * system of a claim that has it in its turn only. `size`: the condition of the growth. Undefined: as it is.
 */
function allocationNow({ real }: Observed, home: Claim, size: ConditionInput | undefined): object | undefined {
  const turn = home.status?.allocatedResourceStatuses?.storage;
  if (size === undefined || real.kind !== 'there')
    return turn === controllerResizes ? { allocatedResourceStatuses: { storage: null } } : undefined;
  // Until the real claim was asked there is nothing to say, and while a kubelet works on an earlier growth, its size stands.
  if (sizeOf(real.object) < sizeOf(home) || turn === kubeletResizes) return undefined;
  const next = size.reason === waitsForKubelet ? kubeletIsDue : controllerResizes;
  const isSaid = amountOf(home.status?.allocatedResources) === sizeOf(real.object);
  if (isSaid && turn === next) return undefined;
  return {
    allocatedResources: { storage: requestOf(real.object) },
    allocatedResourceStatuses: { storage: next },
  };
}

/** What the claim says it has, once the real claim has it; undefined: as it is. */
function capacityNow({ volume, real }: Observed, home: Claim): string | undefined {
  if (real.kind !== 'there' || volume.status?.phase !== 'Bound') return undefined;
  const has = amountOf(home.status?.capacity);
  const granted = amountOf(real.object.status?.capacity);
  const isDone = has < sizeOf(home) && granted >= sizeOf(home) && amountOf(volume.spec?.capacity) >= sizeOf(home);
  return isDone ? real.object.status?.capacity?.storage : undefined;
}
