/** Transitions of a move, and what is asked in several phases. Pure. */
import { timestamp } from '#kube/writes/conditions.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { moveFinalizer, storageAnnotation } from '#shared/domain/storage-keys.ts';
import {
  localTarget,
  type MoveOrder,
  type MovePhase,
  type VolumeMoveStatus,
} from '#shared/schema/isthmus/volume-move.ts';
import type { Facts, Patch, Step } from './facts.ts';
import { isStaging, type MoverRole, moverName, stagingName } from './objects.ts';
import { hasEnded, hindrance, isHeldBack, resultOf, usesClaim } from './pods.ts';

export const wait = (on: string): Step => ({ do: 'wait', on });

export function statusOf({ move, nowMs }: Facts): VolumeMoveStatus {
  return move.status ?? { phase: 'Pending', since: timestamp(nowMs), way: 'forth' };
}

/** `undefined` takes a field away. */
type Changes = { readonly [K in keyof VolumeMoveStatus]?: VolumeMoveStatus[K] | undefined };

export function changed(facts: Facts, changes: Changes): Step {
  const all = { ...statusOf(facts), ...changes };
  const kept = Object.entries(all).filter(([, value]) => value !== undefined);
  return { do: 'status', status: Object.fromEntries(kept) as VolumeMoveStatus };
}

/** Counts and texts of the phase before go. */
export const enter = (facts: Facts, phase: MovePhase, changes: Changes = {}): Step =>
  changed(facts, {
    phase,
    since: timestamp(facts.nowMs),
    message: undefined,
    attempts: undefined,
    failedPod: undefined,
    silentSince: undefined,
    ...changes,
  });

export const sinceMs = (facts: Facts, from = statusOf(facts).since): number => facts.nowMs - Date.parse(from);

/** That was not taken up yet. */
export function orderOf({ move }: Pick<Facts, 'move'>): MoveOrder | undefined {
  return move.metadata.generation === move.status?.settledGeneration ? undefined : move.spec.order;
}
export const settling = ({ move }: Facts): Changes =>
  move.metadata.generation === undefined ? {} : { settledGeneration: move.metadata.generation };

/** The time for an undo has passed, and no order says what is to become of the volume that was left. */
export const isWindowOver = ({ move, nowMs }: Pick<Facts, 'move' | 'nowMs'>): boolean =>
  move.status?.undoUntil !== undefined && nowMs >= Date.parse(move.status.undoUntil) && orderOf({ move }) === undefined;

/** Why the volume that is gone to may not be there, so that nothing but an order may end the one that was left. Undefined: its cluster has it. */
export function unseen(facts: Facts): string | undefined {
  const { real } = facts;
  const { to } = statusOf(facts);
  if (facts.to === undefined) return `PersistentVolume ${to?.volume} is gone here`;
  const cluster = to?.at === localTarget ? 'this cluster' : `cluster ${to?.at}`;
  if (real === 'silent') return `${cluster} does not say that it has volume ${to?.volume}`;
  if (real === undefined) return `${cluster} says that it does not have volume ${to?.volume}`;
  if (real.metadata.deletionTimestamp !== undefined)
    return `${cluster} says that volume ${to?.volume} is being deleted`;
  const phase = real.status?.phase ?? 'Pending';
  return phase === 'Bound' ? undefined : `${cluster} says that the claim of volume ${to?.volume} is ${phase}`;
}

/** Of an undo window that begins now. */
export const windowEnd = ({ move, nowMs }: Pick<Facts, 'move' | 'nowMs'>): string =>
  timestamp(nowMs + move.spec.undoWindowSeconds * 1_000);

/** The end of a window that begins again. Undefined stays: the volume that was left is kept until an order. */
export const windowFromNow = (facts: Pick<Facts, 'move' | 'nowMs'>): string | undefined =>
  facts.move.status?.undoUntil && windowEnd(facts);

/** The volume that was left is kept for so long at a time while the other one is not seen. */
const lookAgainMs = 10 * 60_000;

/** The end of the window ends nothing while there is a doubt about the other volume. */
export function prolonged(facts: Facts, doubt: string): Changes {
  const left = statusOf(facts).from?.volume;
  const lost = lostClaim(facts);
  const choice =
    lost === undefined
      ? 'and an undo goes on being accepted'
      : `${lost}, so there is no undo: confirm deletes volume ${left}, and deleting this VolumeMove keeps it as a RetainedVolume`;
  return {
    undoUntil: timestamp(facts.nowMs + lookAgainMs),
    message: `${doubt}: volume ${left}, which was left, is kept${lost === undefined ? ', ' : '; '}${choice}`,
  };
}

/** The claim whose volume is moved, in this very incarnation. */
export const oldClaim = (facts: Facts): PersistentVolumeClaim | undefined =>
  facts.claim?.metadata.uid === statusOf(facts).claimUid ? facts.claim : undefined;

const isLeaving = (claim: PersistentVolumeClaim | undefined): boolean =>
  claim?.metadata.deletionTimestamp !== undefined;
export const isHeld = ({ metadata }: PersistentVolumeClaim): boolean =>
  metadata.finalizers?.includes(moveFinalizer) ?? false;
/** It was deleted for the switch, and waits for us. */
export const isAboutToSwitch = (claim: PersistentVolumeClaim | undefined): boolean =>
  claim !== undefined && isLeaving(claim) && isHeld(claim);

/** The claim was taken away, and not by the move. */
export function lostClaim(facts: Facts): string | undefined {
  const old = oldClaim(facts);
  const { name } = facts.move.metadata;
  if (old === undefined) return `claim ${name} is gone, or another one has its name`;
  if (isLeaving(old) && !isHeld(old)) return `claim ${name} was deleted`;
  return undefined;
}

/**
 * Everything back as it was. A claim that is deleted already is made again on the volume that it had, by a switch to where it comes from.
 */
export function abort(facts: Facts, why: string, changes: Changes = {}): Step {
  const { from, to } = statusOf(facts);
  return isAboutToSwitch(oldClaim(facts))
    ? enter(facts, 'Switching', { from: to, to: from, gaveUp: why, message: why, ...changes })
    : enter(facts, 'Aborting', { gaveUp: why, message: why, ...changes });
}

export const podOf = ({ pods, move }: Facts, role: MoverRole): Pod | undefined =>
  pods.find(({ metadata }) => metadata.name === moverName(move, role));

/** It waits once the deletion of all is ordered. Undefined: there is none of these. */
export function removePods(facts: Facts, roles: readonly MoverRole[]): Step | undefined {
  const all = roles.map((role) => podOf(facts, role)).filter((pod) => pod !== undefined);
  const pod = all.find(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (pod) return { do: 'deletePod', pod };
  return all[0] && wait(`pod ${all[0].metadata.name} to end`);
}

export const equip = ({ keys, service }: Facts): Step | undefined =>
  keys ? (service ? undefined : { do: 'createService' }) : { do: 'createKeys' };
export const clear = ({ keys, service }: Facts): Step | undefined =>
  service ? { do: 'deleteService' } : keys ? { do: 'deleteKeys' } : undefined;

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;

/** For how long that pod has not answered, or has been ending. */
export function unreadyMs(facts: Facts, role: MoverRole): number {
  const { metadata, status } = podOf(facts, role) ?? {};
  const ready = status?.conditions?.find(({ type }) => type === 'Ready') as { lastTransitionTime?: string } | undefined;
  const from = metadata?.deletionTimestamp ?? ready?.lastTransitionTime ?? metadata?.creationTimestamp;
  return from === undefined ? 0 : sinceMs(facts, from);
}

/** Undefined: it answers. */
export function sending(facts: Facts, node?: string): Step | undefined {
  const { move } = facts;
  const pod = podOf(facts, 'send');
  if (pod === undefined)
    return { do: 'createPod', role: 'send', claim: move.metadata.name, at: statusOf(facts).from?.at ?? '', node };
  if (pod.metadata.deletionTimestamp !== undefined) return wait(`pod ${pod.metadata.name} to end`);
  if (hasEnded(pod)) return { do: 'deletePod', pod };
  return isReady(pod) ? undefined : wait(hindrance(pod));
}

/** An agent that was updated in the middle of a move goes on with pods that understand the one that sends. */
export const imageOf = (facts: Facts, role: MoverRole): string =>
  (role === 'send' ? undefined : podOf(facts, 'send')?.spec?.containers[0]?.image) ?? facts.image ?? '';

const mostAttempts = 3;
const startMs = 5 * 60_000;

/** Until that mover has ended well; `done` says what comes then. */
export function fetching(facts: Facts, role: 'live' | 'final', done: (pod: Pod) => Step): Step {
  const { move, progress } = facts;
  const status = statusOf(facts);
  const pod = podOf(facts, role);
  if (pod === undefined) return { do: 'createPod', role, claim: stagingName(move), at: status.to?.at ?? '' };
  if (pod.metadata.deletionTimestamp !== undefined) return wait(`pod ${pod.metadata.name} to end`);
  if (hasEnded(pod)) {
    const result = resultOf(pod);
    if (pod.status?.phase === 'Succeeded' && result?.ok) return done(pod);
    if (status.failedPod === pod.metadata.uid) return { do: 'deletePod', pod };
    const why =
      result?.error ?? `pod ${pod.metadata.name} ended without a result: ${pod.status?.message ?? 'unknown reason'}`;
    const attempts = (status.attempts ?? 0) + 1;
    if (attempts >= mostAttempts) return abort(facts, why);
    return changed(facts, { attempts, failedPod: pod.metadata.uid, message: why });
  }
  if (pod.status?.phase !== 'Running') {
    const madeMs = Date.parse(pod.metadata.creationTimestamp ?? '');
    return facts.nowMs - madeMs > startMs
      ? abort(facts, `waited ${startMs / 60_000} minutes for ${hindrance(pod)}`)
      : wait(hindrance(pod));
  }
  const isNews =
    progress !== undefined && (progress.bytes !== status.bytesDone || progress.total !== status.bytesTotal);
  if (isNews)
    return changed(facts, {
      bytesDone: progress.bytes,
      bytesTotal: progress.total,
      bytesPerSecond: progress.rate,
      message: undefined,
    });
  return wait('');
}

/** Takes our mark and our finalizer off. */
export function thawPatch({ metadata }: PersistentVolumeClaim): Patch | undefined {
  const marked = metadata.annotations?.[storageAnnotation.moving] !== undefined;
  if (!marked && !metadata.finalizers?.includes(moveFinalizer)) return undefined;
  return {
    metadata: {
      annotations: { [storageAnnotation.moving]: null },
      finalizers: (metadata.finalizers ?? []).filter((one) => one !== moveFinalizer),
    },
  };
}

/** Pods that wait for the end of a move. */
export function release({ pods, move }: Facts): Step | undefined {
  const pod = pods.find((one) => isHeldBack(one) && usesClaim(one, move.metadata.name));
  return pod ? { do: 'ungate', pod } : undefined;
}

/** Reserves the volume for the claim of this name, whichever incarnation; undefined: it is. */
export function reserve(volume: PersistentVolume, namespace: string, name: string): Step | undefined {
  const { claimRef } = volume.spec ?? {};
  if (claimRef?.namespace === namespace && claimRef.name === name && claimRef.uid === undefined) return undefined;
  const known = volume.metadata.annotations?.[storageAnnotation.realClaimUid];
  return {
    do: 'patchVolume',
    volume,
    patch: {
      metadata: { annotations: { [storageAnnotation.realClaimUid]: known ?? claimRef?.uid ?? null } },
      spec: {
        claimRef: {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          namespace,
          name,
          uid: null,
          resourceVersion: null,
        },
      },
    },
  };
}

/** Whether a claim has the volume. The phase of a volume lags: it still says Bound for a moment after the claim has gone that the move deleted. */
export function isTaken({ claim, move }: Facts, { spec, status }: PersistentVolume): boolean | 'unsettled' {
  if (status?.phase !== 'Bound') return false;
  const { namespace, name = '', uid } = spec?.claimRef ?? {};
  const isOfMove = namespace === move.metadata.namespace && (name === move.metadata.name || isStaging(move, name));
  return isOfMove && uid !== claim?.metadata.uid ? 'unsettled' : true;
}

/** With what is noted of it; a policy that a person sets meanwhile is theirs. */
const policyPatch = (volume: PersistentVolume, policy: string, note: string | null): Step => ({
  do: 'patchVolume',
  volume,
  patch: {
    metadata: { annotations: { [storageAnnotation.policyAfterMove]: note } },
    spec: { persistentVolumeReclaimPolicy: policy },
  },
});
const policyOf = ({ spec }: PersistentVolume): string => spec?.persistentVolumeReclaimPolicy ?? 'Retain';
const notedPolicy = ({ metadata }: PersistentVolume): string | undefined =>
  metadata.annotations?.[storageAnnotation.policyAfterMove];

/** For as long as no claim has it. Undefined: it is retained. */
export const retain = (volume: PersistentVolume): Step | undefined =>
  policyOf(volume) === 'Retain' ? undefined : policyPatch(volume, 'Retain', policyOf(volume));

/** What becomes of the volume when no move is under way. */
export const lastingPolicy = (volume: PersistentVolume): string => notedPolicy(volume) ?? policyOf(volume);

/** Undefined: it has its own policy. */
export const restorePolicy = (volume: PersistentVolume): Step | undefined =>
  notedPolicy(volume) === undefined ? undefined : policyPatch(volume, lastingPolicy(volume), null);

/** Its data goes as soon as no claim has it. Undefined: that is ordered. */
export const giveUp = (volume: PersistentVolume): Step | undefined =>
  policyOf(volume) === 'Delete' ? undefined : policyPatch(volume, 'Delete', null);
