/**
 * The switch of a claim from one volume to the other, and what becomes of the volume that is left. From the moment the claim is deleted no pod can be
 * scheduled with it; our finalizer keeps it until the new volume is reserved for its name. Pure.
 */
import { homeClaimOf, moveFinalizer, storageAnnotation } from '#shared/domain/storage-keys.ts';
import { requestOf } from '../model/claims.ts';
import type { Facts, Step } from './facts.ts';
import { claimAgain, noteFrom } from './objects.ts';
import { usersOf } from './pods.ts';
import {
  abort,
  clear,
  enter,
  giveUp,
  isHeld,
  isTaken,
  lastingPolicy,
  oldClaim,
  prolonged,
  release,
  removePods,
  reserve,
  restorePolicy,
  retain,
  sinceMs,
  statusOf,
  thawPatch,
  unseen,
  wait,
  windowEnd,
  windowFromNow,
} from './progress.ts';

/** How long each step of the switch, and of the end of a move, waits for the other side. */
const patienceMs = 10 * 60_000;
const isDeleted = ({ move }: Facts): boolean => move.metadata.deletionTimestamp !== undefined;
const isLate = (facts: Facts, from?: string): boolean => sinceMs(facts, from) > patienceMs;

export function switching(facts: Facts): Step {
  const { claim, to, move } = facts;
  const old = oldClaim(facts);
  if (to === undefined) return withoutTarget(facts);
  if (old !== undefined) return leaving(facts);
  // Also of a claim that its StatefulSet has made again: the volume that is reserved for its name is what it gets.
  const reserved = claim?.spec?.volumeName === undefined ? reserveFor(facts) : undefined;
  if (reserved) return reserved;
  return claim === undefined ? { do: 'createClaim', claim: claimAgain(move, noteFrom(move), to) } : arriving(facts);
}

/** The volume that the claim was to get was deleted by a person. */
function withoutTarget(facts: Facts): Step {
  const { from } = facts;
  const { from: left, to: lost, gaveUp } = statusOf(facts);
  const old = oldClaim(facts);
  const why = `volume ${lost?.volume}, to which the claim was to go, is gone`;
  if (old !== undefined && old.metadata.deletionTimestamp === undefined) return abort(facts, why);
  // The way back is to a volume that is whole; the copy need not be, when that way ends as well.
  if (from !== undefined && gaveUp === undefined)
    return enter(facts, 'Switching', { from: lost, to: left, gaveUp: why, message: why });
  return isDeleted(facts)
    ? ended(facts)
    : wait(`volume ${lost?.volume}: it is gone; restore it, or delete this VolumeMove`);
}

/** The switch does not come to its end, and the VolumeMove is deleted: pods and claim are let go, and the volumes stay. */
function ended(facts: Facts): Step {
  const { claim } = facts;
  const thaw = claim && thawPatch(claim);
  if (claim && thaw) return { do: 'patchClaim', claim, patch: thaw };
  return clear(facts) ?? enter(facts, 'Keeping');
}

const reserveFor = ({ to, move }: Facts): Step | undefined =>
  to && reserve(to, move.metadata.namespace ?? '', move.metadata.name);

function leaving(facts: Facts): Step {
  const { from, to, staging, mountedBy } = facts;
  const old = oldClaim(facts);
  const status = statusOf(facts);
  if (old === undefined || to === undefined) return wait('');
  const kept = (from && retain(from)) ?? retain(to);
  if (kept) return kept;
  if (old.metadata.deletionTimestamp === undefined) {
    // It has grown since it was noted.
    if (status.gaveUp === undefined && requestOf(old) !== requestOf(noteFrom(facts.move)))
      return enter(facts, 'Freezing');
    if (isHeld(old)) return { do: 'deleteClaim', claim: old };
    const finalizers = [...(old.metadata.finalizers ?? []), moveFinalizer];
    return { do: 'patchClaim', claim: old, patch: { metadata: { finalizers } } };
  }
  if (status.gaveUp === undefined) {
    // Admitted before the claim said that it moves, and placed before it was deleted: what such a pod wrote has to be copied, too.
    if (mountedBy === 'unknown') {
      const on = `cluster ${status.from?.at} to say that nothing has the volume mounted`;
      return isLate(facts) ? abort(facts, `waited in vain for ${on}`) : wait(on);
    }
    if (usersOf(facts.pods, facts.move).length > 0 || mountedBy.length > 0) return enter(facts, 'Freezing');
  }
  const removed = removePods(facts, ['final', 'live', 'send']);
  if (removed) return removed;
  if (staging?.metadata.deletionTimestamp !== undefined) return wait(`claim ${staging.metadata.name} to go`);
  if (staging) return { do: 'deleteClaim', claim: staging };
  // The volume that it still has cannot be reserved.
  const reserved = status.gaveUp === undefined ? reserveFor(facts) : undefined;
  if (reserved) return reserved;
  if (!isHeld(old)) {
    const { name, finalizers: others = [] } = old.metadata;
    return wait(`claim ${name} to go${others.length > 0 ? `, which ${others.join(', ')} keeps` : ''}`);
  }
  const finalizers = (old.metadata.finalizers ?? []).filter((one) => one !== moveFinalizer);
  return { do: 'patchClaim', claim: old, patch: { metadata: { finalizers } } };
}

/** The claim is there again, made by us or by its StatefulSet. */
function arriving(facts: Facts): Step {
  const { claim, to } = facts;
  const real = facts.real === 'silent' ? undefined : facts.real;
  const status = statusOf(facts);
  if (claim === undefined || to === undefined) return wait('');
  const { uid = '', namespace = '', name, creationTimestamp } = claim.metadata;
  // What came before the claim was made took its own time.
  const late = isLate(facts) && isLate(facts, creationTimestamp);
  if (claim.spec?.volumeName !== to.metadata.name || claim.status?.phase !== 'Bound' || to.spec?.claimRef?.uid !== uid)
    return isDeleted(facts) && late
      ? ended(facts)
      : wait(`claim ${name} to be bound to volume ${to.metadata.name}; to give that up, delete this VolumeMove`);
  if (real === undefined && !late) return wait(`cluster ${status.to?.at} to say that it has the volume`);
  const home = homeClaimOf(real?.metadata.annotations);
  if (real !== undefined && (home?.uid !== uid || home.name !== name || home.namespace !== namespace))
    return {
      do: 'patchReal',
      claim: real,
      patch: {
        metadata: {
          annotations: {
            [storageAnnotation.claim]: `${namespace}/${name}`,
            [storageAnnotation.claimUid]: uid,
            [storageAnnotation.standsFor]: null,
          },
        },
      },
    };
  // A real claim that could not be asked goes on naming the claim that the volume had before.
  if (real !== undefined && to.metadata.annotations?.[storageAnnotation.realClaimUid] !== undefined)
    return {
      do: 'patchVolume',
      volume: to,
      patch: { metadata: { annotations: { [storageAnnotation.realClaimUid]: null } } },
    };
  const restored = restorePolicy(to);
  if (restored) return restored;
  const thaw = thawPatch(claim);
  if (thaw) return { do: 'patchClaim', claim, patch: thaw };
  const next = release(facts) ?? clear(facts);
  if (next) return next;
  const frozenSeconds = status.frozenAt ? Math.round(sinceMs(facts, status.frozenAt) / 1_000) : undefined;
  const common = { claimUid: uid, frozenSeconds, frozenAt: undefined };
  if (status.way === 'back' && status.gaveUp !== undefined)
    return enter(facts, 'Undoable', {
      ...common,
      way: 'forth',
      gaveUp: undefined,
      withoutCopy: undefined,
      undoUntil: windowFromNow(facts),
      message: `the undo was given up: ${status.gaveUp}`,
    });
  if (status.way === 'back' || status.gaveUp !== undefined)
    return enter(facts, 'Discarding', { ...common, message: status.gaveUp });
  // No time ends the only volume that is known to be there.
  const doubt = unseen(facts);
  if (doubt !== undefined) {
    const message = `${doubt}: the one that was left is kept until confirm or undo`;
    return enter(facts, 'Undoable', { ...common, undoUntil: undefined, message });
  }
  const undoUntil = windowEnd(facts);
  return enter(facts, 'Undoable', { ...common, undoUntil });
}

/** The volume that is left goes, as its class has it. */
export function discarding(facts: Facts): Step {
  const { from } = facts;
  const status = statusOf(facts);
  const end = status.way === 'back' ? 'Undone' : status.gaveUp === undefined ? 'Confirmed' : 'Aborted';
  const held = release(facts);
  if (held) return held;
  if (from === undefined) return enter(facts, end, { message: status.gaveUp });
  const name = from.metadata.name;
  const policy = lastingPolicy(from);
  if (policy !== 'Delete')
    return enter(facts, end, { message: `volume ${name} stays: its reclaim policy is ${policy}` });
  const taken = from.metadata.deletionTimestamp === undefined && isTaken(facts, from);
  if (taken === 'unsettled' && !isLate(facts)) return wait(`volume ${name} to be Released`);
  if (taken === true) return enter(facts, end, { message: `volume ${name} stays: it has a claim again` });
  const on = `the data of volume ${name} in ${status.from?.at} to be deleted`;
  const order = giveUp(from);
  // Without a confirmation it may be the only copy.
  const isOrdered = end === 'Confirmed' && status.confirmed === true;
  const doubt = order && !isOrdered ? unseen(facts) : undefined;
  if (doubt !== undefined && isDeleted(facts)) return enter(facts, 'Keeping');
  // It was seen when the window ended.
  if (doubt !== undefined && end === 'Confirmed') return enter(facts, 'Undoable', prolonged(facts, doubt));
  if (doubt !== undefined)
    return wait(
      `volume ${status.to?.volume}: ${doubt}, so volume ${name} is kept; to end this, delete this VolumeMove`,
    );
  return order ?? (isLate(facts) ? enter(facts, end, { message: `${on} when that cluster answers` }) : wait(on));
}

/** The VolumeMove was deleted: what it was the record of becomes a RetainedVolume. Undefined: it is. */
export function keeping(facts: Facts): Step | undefined {
  const { from } = facts;
  const held = release(facts);
  if (held) return held;
  // Of a class that retains, the PersistentVolume is the record. One with a claim has an owner again.
  if (from === undefined || lastingPolicy(from) !== 'Delete') return undefined;
  // From then on it is the record itself: its finalizer goes when there is a RetainedVolume.
  if (from.metadata.deletionTimestamp !== undefined)
    return isLate(facts)
      ? undefined
      : wait(`volume ${from.metadata.name} to go; its data in ${statusOf(facts).from?.at} becomes a RetainedVolume`);
  const taken = isTaken(facts, from);
  if (taken === 'unsettled' && !isLate(facts)) return wait(`volume ${from.metadata.name} to be Released`);
  return taken === true ? undefined : { do: 'deleteVolume', volume: from };
}

/** Before the switch: pods go on where they were, and what was copied goes. */
export function aborting(facts: Facts): Step {
  const { from, staging, to } = facts;
  const status = statusOf(facts);
  const removed = removePods(facts, ['final', 'live', 'send']);
  const old = oldClaim(facts);
  // It was to be retained over the switch.
  const restored = from && restorePolicy(from);
  if (restored) return restored;
  const thaw = old && thawPatch(old);
  if (old && thaw) return { do: 'patchClaim', claim: old, patch: thaw };
  const held = release(facts);
  if (held) return held;
  // What is ordered to go needs nothing more of this move, however long its cluster does not answer.
  const late = isLate(facts);
  if (removed && (removed.do !== 'wait' || !late)) return removed;
  const cleared = clear(facts);
  if (cleared) return cleared;
  const isBack = status.way === 'back';
  if (staging) {
    const policy = to && (isBack ? retain(to) : giveUp(to));
    if (policy) return policy;
    if (staging.metadata.deletionTimestamp === undefined) return { do: 'deleteClaim', claim: staging };
    if (!late) return wait(`claim ${staging.metadata.name} to go`);
  }
  if (isBack)
    return enter(facts, 'Undoable', {
      way: 'forth',
      from: status.to,
      to: status.from,
      gaveUp: undefined,
      withoutCopy: undefined,
      frozenAt: undefined,
      undoUntil: windowFromNow(facts),
      message: `the undo was given up: ${status.gaveUp}`,
    });
  // Of a copy that was switched to and left again, and of one that lost its claim without us.
  const rest = to && giveUp(to);
  if (rest) return rest;
  if (to !== undefined && !late) return wait(`what was copied to ${status.to?.at} to be deleted`);
  return enter(facts, 'Aborted', { message: status.gaveUp });
}
