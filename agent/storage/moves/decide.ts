/**
 * The next step of a move, from what both clusters say now. Every step is one write, and every step but the notes of the status can be read off the
 * objects again, so an agent that ended anywhere is continued by the next. Pure.
 */
import { timestamp } from '#kube/writes/conditions.ts';
import { moveFinalizer, storageAnnotation } from '#shared/domain/storage-keys.ts';
import { remoteOf } from '#shared/domain/volumes.ts';
import { localTarget, type MovePhase } from '#shared/schema/isthmus/volume-move.ts';
import { amountOf, nodeOf, requestOf } from '../model/claims.ts';
import type { Facts, Step } from './facts.ts';
import { noteFrom, noteOf, stagingClaim, stagingName } from './objects.ts';
import { hasEnded, hindrance, resultOf, usersOf, whyNotStoppable } from './pods.ts';
import {
  abort,
  changed,
  enter,
  equip,
  fetching,
  isAboutToSwitch,
  isWindowOver,
  lostClaim,
  oldClaim,
  orderOf,
  podOf,
  prolonged,
  release,
  removePods,
  reserve,
  sending,
  settling,
  sinceMs,
  statusOf,
  unreadyMs,
  unseen,
  wait,
  windowFromNow,
} from './progress.ts';
import { aborting, discarding, keeping, switching } from './switching.ts';

const over: ReadonlySet<MovePhase> = new Set(['Refused', 'Confirmed', 'Undone', 'Aborted']);
const prepareMs = 10 * 60_000;
const freezeMs = 10 * 60_000;
/** A volume that no second node may mount is copied once its pods have ended. */
const warmMs = 2 * 60_000;

export function decide(facts: Facts): Step {
  const { metadata } = facts.move;
  const { phase } = statusOf(facts);
  const guarded = metadata.finalizers?.includes(moveFinalizer) ?? false;
  const unguard: Step = guarded ? { do: 'unguard' } : { do: 'nothing' };
  if (over.has(phase)) return release(facts) ?? unguard;
  const deleted = metadata.deletionTimestamp !== undefined;
  if (deleted && phase === 'Pending') return unguard;
  if (phase === 'Preparing' || phase === 'Copying' || phase === 'Freezing' || phase === 'FinalCopy') {
    if (deleted) return abort(facts, 'the VolumeMove was deleted');
    if (orderOf(facts) === 'abort') return abort(facts, 'it was ordered', settling(facts));
  }
  // The API server refuses it; one that got past it may not end an undo window that has not begun.
  if (phase !== 'Undoable' && orderOf(facts) === 'confirm')
    return changed(facts, {
      ...settling(facts),
      message: 'confirm comes too early: it is accepted while the move is Undoable',
    });
  switch (phase) {
    case 'Preparing':
      return preparing(facts);
    case 'Copying':
      return copying(facts);
    case 'Freezing':
      return freezing(facts);
    case 'FinalCopy':
      return finalCopy(facts);
    case 'Switching':
      return switching(facts);
    case 'Undoable':
      return undoable(facts);
    case 'Discarding':
      return discarding(facts);
    case 'Keeping':
      return keeping(facts) ?? unguard;
    case 'Aborting':
      return aborting(facts);
    default:
      return pending(facts, guarded);
  }
}

function pending(facts: Facts, guarded: boolean): Step {
  const { claim, from, refusal, move } = facts;
  if (orderOf(facts) === 'abort') return enter(facts, 'Aborted', { ...settling(facts), message: 'it was ordered' });
  if (refusal !== undefined) return enter(facts, 'Refused', { message: refusal });
  if (claim === undefined || from === undefined) return wait(`claim ${move.metadata.name} and its volume to be read`);
  if (!guarded) return { do: 'guard' };
  return enter(facts, 'Preparing', {
    from: {
      at: remoteOf(from)?.provider ?? localTarget,
      volume: from.metadata.name,
      node: nodeOf(claim),
    },
    to: { at: move.spec.target },
    claimUid: claim.metadata.uid,
    claim: JSON.stringify(noteOf(claim)),
    cold: claim.spec?.accessModes?.includes('ReadWriteOncePod') || undefined,
  });
}

/** The claim for the copy; the volume that it got is noted. */
function staged(facts: Facts): Step | undefined {
  const { move, staging, to } = facts;
  const status = statusOf(facts);
  const name = stagingName(move);
  if (staging === undefined) {
    const reserved = to && reserve(to, move.metadata.namespace ?? '', name);
    return reserved ?? { do: 'createClaim', claim: stagingClaim(move, noteFrom(move), to) };
  }
  if (staging.metadata.deletionTimestamp !== undefined) return wait(`claim ${name} to go`);
  if (status.to?.volume === undefined && to !== undefined && staging.status?.phase === 'Bound')
    return changed(facts, {
      to: {
        at: status.to?.at ?? '',
        volume: to.metadata.name,
        node: status.to?.node ?? nodeOf(staging),
      },
    });
  return undefined;
}

function preparing(facts: Facts): Step {
  const status = statusOf(facts);
  const lost = lostClaim(facts);
  if (lost) return abort(facts, lost);
  const step = equip(facts) ?? staged(facts);
  if (step) return step;
  const coldly = (): Step => enter(facts, 'Freezing', { cold: true, frozenAt: timestamp(facts.nowMs) });
  if (status.cold) return coldly();
  const atHome = status.from?.at === localTarget;
  const [user] = usersOf(facts.pods, facts.move);
  const source = sending(facts, atHome ? user?.spec?.nodeName : undefined);
  if (source?.do === 'wait') {
    const pod = podOf(facts, 'send');
    const reason = pod?.status?.containerStatuses?.[0]?.state?.waiting?.reason ?? 'ContainerCreating';
    if (user !== undefined && reason === 'ContainerCreating' && sinceMs(facts) > warmMs) return coldly();
    if (sinceMs(facts) > prepareMs) return abort(facts, `waited ${prepareMs / 60_000} minutes for ${source.on}`);
  }
  return source ?? enter(facts, 'Copying');
}

function copying(facts: Facts): Step {
  const lost = lostClaim(facts);
  if (lost) return abort(facts, lost);
  const step = silence(facts) ?? equip(facts) ?? staged(facts) ?? sending(facts);
  // A mover that copies says itself how long it waits for the other one.
  if (step && (step.do !== 'wait' || podOf(facts, 'live') === undefined))
    return step.do === 'wait' && unreadyMs(facts, 'send') > prepareMs
      ? abort(facts, `waited ${prepareMs / 60_000} minutes for ${step.on}`)
      : step;
  return fetching(facts, 'live', (pod) => {
    if (statusOf(facts).to?.volume === undefined) return wait(`claim ${stagingName(facts.move)} to be Bound`);
    const passes = resultOf(pod)?.passes;
    return enter(facts, 'Freezing', { passes, frozenAt: timestamp(facts.nowMs) });
  });
}

function freezing(facts: Facts): Step {
  const { move, mountedBy, nowMs } = facts;
  const status = statusOf(facts);
  const lost = lostClaim(facts);
  const old = oldClaim(facts);
  if (lost || old === undefined) return abort(facts, lost ?? '');
  if (old.metadata.annotations?.[storageAnnotation.moving] === undefined)
    return {
      do: 'patchClaim',
      claim: old,
      patch: { metadata: { annotations: { [storageAnnotation.moving]: move.metadata.uid ?? '' } } },
    };
  const grown = hasGrown(facts);
  if (grown) return grown;
  const isLate = nowMs - Date.parse(status.frozenAt ?? status.since) > freezeMs;
  const late = (step: Step): Step =>
    isLate && step.do === 'wait' ? abort(facts, `waited ${freezeMs / 60_000} minutes for ${step.on}`) : step;
  const fetchers = removePods(facts, ['live', 'final']);
  if (fetchers) return late(fetchers);
  for (const pod of usersOf(facts.pods, move)) {
    const { name, deletionTimestamp } = pod.metadata;
    const why = isAboutToSwitch(old) ? undefined : whyNotStoppable(pod);
    if (why !== undefined && deletionTimestamp === undefined) return abort(facts, why);
    return late(deletionTimestamp === undefined ? { do: 'deletePod', pod } : wait(`pod ${name} to end`));
  }
  if (mountedBy === 'unknown')
    return late(wait(`cluster ${status.from?.at} to say that nothing has the volume mounted`));
  if (mountedBy.length > 0) return late(wait(`${mountedBy.join(', ')} to end at cluster ${status.from?.at}`));
  return enter(facts, status.withoutCopy ? 'Switching' : 'FinalCopy', {
    claim: JSON.stringify(noteOf(old)),
    frozenAt: status.frozenAt ?? timestamp(nowMs),
  });
}

/** The copy is of the size that the claim asked for when it was made; that of a cold move is made after the freeze. */
function hasGrown(facts: Facts): Step | undefined {
  const { to } = facts;
  const old = oldClaim(facts);
  if (statusOf(facts).way === 'back' || to === undefined || old === undefined) return undefined;
  return amountOf(old.spec?.resources?.requests) > amountOf(to.spec?.capacity)
    ? abort(facts, `the claim has grown to ${requestOf(old)} since the copy was made`)
    : undefined;
}

function finalCopy(facts: Facts): Step {
  const { mountedBy, move } = facts;
  const lost = lostClaim(facts);
  if (lost) return abort(facts, lost);
  const grown = hasGrown(facts);
  if (grown) return grown;
  const isUsed = usersOf(facts.pods, move).length > 0 || (mountedBy !== 'unknown' && mountedBy.length > 0);
  if (isUsed) return enter(facts, 'Freezing');
  const unheard = silence(facts);
  if (unheard) return unheard;
  const step = equip(facts) ?? staged(facts) ?? sending(facts);
  const final = podOf(facts, 'final');
  // One that has ended needs the other one no more.
  if (step && (step.do !== 'wait' || final === undefined || !hasEnded(final))) {
    const pod = podOf(facts, 'send');
    return step.do === 'wait' && sinceMs(facts) > freezeMs
      ? abort(facts, `waited ${freezeMs / 60_000} minutes for ${pod ? hindrance(pod) : step.on}`)
      : step;
  }
  return fetching(facts, 'final', (pod) => {
    const verified = resultOf(pod)?.verified;
    if (verified === undefined) return abort(facts, `pod ${pod.metadata.name} has not compared both sides`);
    if (statusOf(facts).to?.volume === undefined) return wait(`claim ${stagingName(move)} to be Bound`);
    return enter(facts, 'Switching', { verifiedFiles: verified.files, verifiedBytes: verified.bytes });
  });
}

/** How a pod ends at a cluster that does not answer is not heard. */
function silence(facts: Facts): Step | undefined {
  const { silentSince } = statusOf(facts);
  if (facts.silent === undefined)
    return silentSince === undefined ? undefined : changed(facts, { silentSince: undefined });
  if (silentSince === undefined) return changed(facts, { silentSince: timestamp(facts.nowMs) });
  return sinceMs(facts, silentSince) > freezeMs
    ? abort(facts, `cluster ${facts.silent} has not answered for ${freezeMs / 60_000} minutes`)
    : undefined;
}

function undoable(facts: Facts): Step {
  const { from } = facts;
  const status = statusOf(facts);
  const held = release(facts);
  if (held) return held;
  if (from === undefined) return enter(facts, 'Confirmed', { message: 'the volume that was left is gone' });
  const order = orderOf(facts);
  const isOver = isWindowOver(facts);
  const doubt = isOver ? unseen(facts) : undefined;
  if (order === 'confirm' || (isOver && doubt === undefined))
    return enter(facts, 'Discarding', {
      ...settling(facts),
      confirmed: order === 'confirm' || undefined,
      bytesDone: undefined,
      bytesTotal: undefined,
    });
  if (order === undefined && facts.move.metadata.deletionTimestamp !== undefined) return enter(facts, 'Keeping');
  if (doubt !== undefined) return changed(facts, prolonged(facts, doubt));
  if (order === undefined)
    return wait(
      `\`isthmus move volume\` with confirm or undo${status.undoUntil === undefined ? '' : `, until ${status.undoUntil}`}`,
    );
  if (order === 'abort')
    return changed(facts, {
      ...settling(facts),
      undoUntil: windowFromNow(facts),
      message: 'abort comes too late: undo is accepted',
    });
  return undoing(facts, order === 'undo-discard-new-writes');
}

/** The same way with the sides swapped. */
function undoing(facts: Facts, withoutCopy: boolean): Step {
  const status = statusOf(facts);
  const old = oldClaim(facts);
  const { from } = facts;
  const problem =
    lostClaim(facts) ??
    (from?.metadata.deletionTimestamp === undefined
      ? undefined
      : `volume ${from.metadata.name}, which was left, is being deleted`) ??
    (facts.left === undefined
      ? `${status.from?.at === localTarget ? 'this cluster' : `cluster ${status.from?.at}`} does not say that it still has what was left`
      : undefined) ??
    usersOf(facts.pods, facts.move)
      .map(whyNotStoppable)
      .find((why) => why !== undefined);
  if (problem !== undefined || old === undefined)
    return changed(facts, { ...settling(facts), undoUntil: windowFromNow(facts), message: `no undo: ${problem}` });
  return enter(facts, withoutCopy ? 'Freezing' : 'Preparing', {
    ...settling(facts),
    way: 'back',
    withoutCopy: withoutCopy || undefined,
    from: status.to,
    to: status.from,
    claim: JSON.stringify(noteOf(old)),
    frozenAt: withoutCopy ? timestamp(facts.nowMs) : undefined,
    bytesDone: undefined,
    bytesTotal: undefined,
    passes: undefined,
    verifiedFiles: undefined,
    verifiedBytes: undefined,
  });
}
