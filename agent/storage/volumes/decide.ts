/**
 * What a volume of ours needs next: the end that its reclaim policy says, growth, and what its claim says of the other side. The data goes only
 * when the volume is over and its policy is Delete; the claim behind it is first marked as one whose data may go. Of a volume that is deleted with
 * policy Retain, the cluster that has the data gets a RetainedVolume; so it does of a claim that `liqoctl move volume` deletes, because liqoctl
 * restores its copy only after that. Pure.
 */
import {
  type Condition,
  type ConditionInput,
  findCondition,
  removeCondition,
  setCondition,
} from '#kube/writes/conditions.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { type ReclaimPolicy, storageAnnotation, storageData, volumeFinalizer } from '#shared/domain/storage-keys.ts';
import { remoteOf } from '#shared/domain/volumes.ts';
import {
  allocationNow,
  allocationOfNone,
  capacityNow,
  conditionsNow,
  type GrowthStep,
  growthSteps,
  isOurs,
} from './growth.ts';

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
  /** Of a volume whose data is about to go: whether `liqoctl move volume` is at work in this cluster. */
  readonly isLiqoctlMoving: boolean;
  readonly nowMs: number;
}

export type Action =
  | { readonly do: 'mark'; readonly claim: Claim; readonly annotations: Readonly<Record<string, string>> }
  /** Its data is kept when it goes: what keeps data of guests at their provider keeps that of this real claim here. */
  | { readonly do: 'guard'; readonly claim: Claim }
  | { readonly do: 'erase'; readonly claim: Claim }
  /** The volume gets the policy Retain, and is marked as one that goes in favour of a RetainedVolume. */
  | { readonly do: 'hand-over'; readonly why: string }
  /** The volume is deleted; its finalizer holds it until the data has its record. */
  | { readonly do: 'delete' }
  /** The volume goes, and nothing holds it any more. */
  | { readonly do: 'finish' }
  | { readonly do: 'release' }
  /** Nothing holds it: the agent was taken out of the cluster meanwhile. */
  | { readonly do: 'hold' }
  /** On the volume itself. */
  | { readonly do: 'note'; readonly annotations: Readonly<Record<string, string>> }
  | GrowthStep
  | { readonly do: 'status'; readonly patch: Readonly<Record<string, unknown>> }
  | { readonly do: 'tell'; readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string }
  | { readonly do: 'wait'; readonly on: string };

/** What no later look takes back: the data is ordered to go, or nothing of this cluster stands for it any more. */
export const isFinal = (action: Action): boolean =>
  action.do === 'erase' ||
  action.do === 'delete' ||
  action.do === 'finish' ||
  action.do === 'release' ||
  (action.do === 'mark' && action.annotations[storageAnnotation.data] === storageData.delete);

const remoteBound = 'isthmus.dev/RemoteBound';
const reachable = 'isthmus.dev/Reachable';
const longestName = 253;

/** `Recycle` is no policy that a provisioner keeps: the data stays. */
const policyOf = ({ spec }: PersistentVolume): ReclaimPolicy =>
  spec?.persistentVolumeReclaimPolicy === 'Delete' ? 'Delete' : 'Retain';

const isHeld = ({ metadata }: PersistentVolume): boolean => metadata.finalizers?.includes(volumeFinalizer) ?? false;
const isGoing = ({ metadata }: PersistentVolume): boolean => metadata.deletionTimestamp !== undefined;

function isOver(volume: PersistentVolume): boolean {
  const phase = volume.status?.phase;
  return phase === 'Released' || phase === 'Failed' || (isGoing(volume) && phase !== 'Bound');
}

/** Whether its data goes, unless something keeps it. */
export const losesData = (volume: PersistentVolume): boolean => isOver(volume) && policyOf(volume) === 'Delete';

export function decide(observed: Observed): readonly Action[] {
  const { volume, home, isLiqoctlMoving } = observed;
  if (isGoing(volume) && !isHeld(volume)) return [];
  if (losesData(volume)) return isLiqoctlMoving ? handingOver : ending(observed);
  if (isOver(volume)) return isGoing(volume) ? keeping(observed) : retained(observed);
  const hold: readonly Action[] = isHeld(volume) ? [] : [{ do: 'hold' }];
  return [
    ...hold,
    ...policy(observed),
    ...noted(observed),
    ...(home ? [...told(observed, home), ...growth(observed, home)] : []),
  ];
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

const handingOver: readonly Action[] = [
  { do: 'hand-over', why: 'liqoctl-move-volume' },
  {
    do: 'tell',
    type: 'Normal',
    reason: 'DataHandedOver',
    message:
      'its claim was deleted while `liqoctl move volume` is at work, which restores its copy only after that: the data becomes a RetainedVolume (isthmus volume list)',
  },
];

/** Stays as it is until it is deleted; one that is handed over is deleted here, once its finalizer holds it. */
function retained(observed: Observed): readonly Action[] {
  const { volume } = observed;
  if (volume.metadata.annotations?.[storageAnnotation.handedOver] === undefined) return policy(observed);
  return isHeld(volume) ? [{ do: 'delete' }] : [{ do: 'hold' }];
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

function growth({ volume, real, source }: Observed, home: Claim): readonly Action[] {
  return real.kind === 'there' && volume.status?.phase === 'Bound'
    ? growthSteps({ home, volume, real: real.object, source })
    : [];
}

/** What the claim says only while something is wrong or awaited, its volume says for good: which one it stands for. */
function noted({ volume, real }: Observed): readonly Action[] {
  if (real.kind !== 'there' || real.object.status?.phase !== 'Bound' || !remoteOf(volume)) return [];
  const { volumeName, storageClassName } = real.object.spec ?? {};
  const said = { [storageAnnotation.realVolume]: volumeName, [storageAnnotation.realStorageClass]: storageClassName };
  const news = Object.entries(said).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && entry[1].length <= longestName && volume.metadata.annotations?.[entry[0]] !== entry[1],
  );
  return news.length === 0 ? [] : [{ do: 'note', annotations: Object.fromEntries(news) }];
}

function told(observed: Observed, home: Claim): readonly Action[] {
  const before = (home.status?.conditions ?? []) as readonly Condition[];
  const { nowMs, volume, real } = observed;
  const isRemote = remoteOf(volume) !== undefined;
  // Of a provider that is not connected nothing is known: what the claim says of it stands.
  const isKnown = !isRemote || real.kind !== 'unknown';
  const growing = isKnown ? growthOf(observed, home) : undefined;
  const bound = boundness(observed);
  const wanted = [
    ...(bound ? [bound] : []),
    ...(isRemote && !observed.reachable ? [unreachableCondition(observed)] : []),
    ...(growing?.conditions ?? []),
  ];
  const isOver = (one: Condition): boolean =>
    one.type === reachable || (isKnown && (one.type === remoteBound || isOurs(observed, one)));
  let conditions = before;
  for (const one of before)
    if (isOver(one) && !findCondition(wanted, one.type)) conditions = removeCondition(conditions, one.type);
  for (const input of wanted) conditions = setCondition(conditions, input, nowMs);
  const changed = conditions !== before;
  const patch = {
    ...(changed && { conditions }),
    ...(growing?.capacity !== undefined && { capacity: { storage: growing.capacity } }),
    ...growing?.allocation,
  };
  const isLost = isRemote && real.kind === 'gone' && bound !== undefined && changed;
  return [
    ...(Object.keys(patch).length > 0 ? [{ do: 'status', patch } as const] : []),
    ...(isLost ? [{ do: 'tell', type: 'Warning', reason: 'RemoteLost', message: bound.message } as const] : []),
  ];
}

interface Growth {
  readonly conditions: readonly ConditionInput[];
  readonly capacity?: string | undefined;
  readonly allocation?: object | undefined;
}

function growthOf({ volume, real, source }: Observed, home: Claim): Growth {
  if (real.kind !== 'there' || volume.status?.phase !== 'Bound')
    return { conditions: [], allocation: allocationOfNone(home, volume) };
  const growing = { home, volume, real: real.object, source };
  const capacity = capacityNow(growing);
  const conditions = conditionsNow(growing, capacity !== undefined);
  return { conditions, capacity, allocation: allocationNow(growing, conditions) };
}

/** Undefined: the claim there has its volume, or nothing is known of it. */
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
      return undefined;
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
