/** `find` stands once in the file. */
export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly put: string;
}

/** Planted mistakes, each of which takes one safeguard of moves and volumes away. */
export interface Mutation extends Edit {
  readonly without: string;
  /** Where a second safeguard would do instead: it goes, too. */
  readonly also?: Edit;
  /** Only some histories find it, or a script that waits long. */
  readonly isSubtle?: true;
  /** Of the drawn history that finds it, tried first. */
  readonly seed?: number;
  /** `what` of the disturbed move that finds it, and is tried first. */
  readonly foundBy?: string;
}

const decide = 'agent/storage/moves/decide.ts';
const switching = 'agent/storage/moves/switching.ts';
const progress = 'agent/storage/moves/progress.ts';
const observe = 'agent/storage/moves/observe.ts';
const volumes = 'agent/storage/volumes/decide.ts';
const growth = 'agent/storage/volumes/growth.ts';
const remoteClaims = 'agent/storage/providers/remote-claims.ts';

export const mutations: readonly Mutation[] = [
  {
    without: 'the mark by which pods of the claim are held back',
    file: decide,
    find: 'if (old.metadata.annotations?.[storageAnnotation.moving] === undefined)',
    put: 'if (old.metadata.name === "")',
  },
  {
    without: 'the wait for pods to end before the last copy',
    file: decide,
    find: 'for (const pod of usersOf(facts.pods, move)) {',
    put: 'for (const pod of usersOf([], move)) {',
  },
  {
    without: 'the wait for pods at the provider to end before the last copy',
    file: decide,
    find: 'if (mountedBy.length > 0) return late(',
    put: 'if (nowMs < 0) return late(',
    isSubtle: true,
  },
  {
    without: 'the answer of the provider about such pods',
    file: observe,
    find: "if (signal.aborted) throw error;\n      return 'unknown';",
    put: 'return [];',
    isSubtle: true,
  },
  {
    without: 'the refusal of a copy that has become too small',
    file: decide,
    find: 'return amountOf(old.spec?.resources?.requests) > amountOf(to.spec?.capacity)',
    put: 'return facts.nowMs < 0',
    isSubtle: true,
  },
  {
    without: 'the result of the pod that copies',
    file: progress,
    find: "if (pod.status?.phase === 'Succeeded' && result?.ok) return done(pod);",
    put: 'return done({ ...pod, status: { phase: \'Succeeded\', containerStatuses: [{ state: { terminated: { message: \'{"ok":true,"verified":{}}\' } } }] } } as unknown as Pod);',
    isSubtle: true,
  },
  {
    without: 'the policy Retain of the volume that is left',
    file: switching,
    find: 'const kept = (from && retain(from)) ?? retain(to);',
    put: 'const kept = retain(to);',
  },
  {
    without: 'the policy Retain of the volume that is gone to',
    file: switching,
    find: 'const kept = (from && retain(from)) ?? retain(to);',
    put: 'const kept = from && retain(from);',
  },
  {
    without: 'the finalizer that keeps the claim until its next volume is reserved',
    file: switching,
    find: "if (isHeld(old)) return { do: 'deleteClaim', claim: old };",
    put: "return { do: 'deleteClaim', claim: old };",
  },
  {
    without: 'the look for pods that were placed just before the claim was deleted',
    file: switching,
    find: "if (usersOf(facts.pods, facts.move).length > 0 || mountedBy.length > 0) return enter(facts, 'Freezing');",
    put: '',
    isSubtle: true,
  },
  {
    without: 'the wait for the claim of the copy to go',
    file: switching,
    find: "if (staging) return { do: 'deleteClaim', claim: staging };",
    put: '',
  },
  {
    without: 'the reservation of the volume before the claim goes',
    file: switching,
    find: 'const reserved = status.gaveUp === undefined ? reserveFor(facts) : undefined;',
    put: 'const reserved = undefined as Step | undefined;',
    isSubtle: true,
  },
  {
    without: 'the wait for the claim to be bound to the new volume',
    file: switching,
    find: "if (claim.spec?.volumeName !== to.metadata.name || claim.status?.phase !== 'Bound' || to.spec?.claimRef?.uid !== uid)",
    put: 'if (to.spec === undefined)',
  },
  {
    without: 'the new owner on the real claim',
    file: switching,
    find: '(home?.uid !== uid || home.name !== name || home.namespace !== namespace)',
    put: 'home === undefined',
    isSubtle: true,
  },
  {
    without: 'the policy of its own for the volume that the claim has now',
    file: switching,
    find: 'const restored = restorePolicy(to);',
    put: 'const restored = undefined as Step | undefined;',
  },
  {
    without: 'the removal of the mark',
    file: switching,
    find: "if (thaw) return { do: 'patchClaim', claim, patch: thaw };\n  const next",
    put: 'const next',
  },
  {
    without: 'the release of pods that wait',
    file: progress,
    find: "return pod ? { do: 'ungate', pod } : undefined;",
    put: 'return undefined;',
  },
  {
    without: 'the removal of keys and Service',
    file: switching,
    find: 'const next = release(facts) ?? clear(facts);',
    put: 'const next = release(facts);',
  },
  {
    without: 'the distinction of a volume whose phase lags from one that has a claim again',
    file: progress,
    find: "return isOfMove && uid !== claim?.metadata.uid ? 'unsettled' : true;",
    put: 'return true;',
    isSubtle: true,
    seed: 1_071,
  },
  {
    without: 'the policy of its own for the volume of a claim whose move ends before the switch',
    file: switching,
    find: 'const restored = from && restorePolicy(from);',
    put: 'const restored = undefined as Step | undefined;',
    foundBy: 'a claim that grows when the switch has begun',
  },
  {
    without: 'the policy Retain of the volume that was left, when an undo is given up',
    file: switching,
    find: '(isBack ? retain(to) : giveUp(to))',
    put: 'giveUp(to)',
    isSubtle: true,
  },
  {
    without: 'the policy Retain that a person has given the volume meanwhile',
    file: progress,
    find: 'notedPolicy(volume) ?? policyOf(volume)',
    put: "notedPolicy(volume) ?? 'Delete'",
    isSubtle: true,
  },
  {
    without: 'the way back of a claim that is deleted for the switch already',
    file: progress,
    find: 'return isAboutToSwitch(oldClaim(facts))',
    put: 'return isAboutToSwitch(undefined)',
    isSubtle: true,
  },
  {
    without: 'the question whether there is something to go back to',
    file: decide,
    find: '(facts.left === undefined',
    put: '(facts.nowMs < 0',
    isSubtle: true,
  },
  {
    without: 'the record of what was left by a move that is deleted',
    file: decide,
    find: "if (order === undefined && facts.move.metadata.deletionTimestamp !== undefined) return enter(facts, 'Keeping');",
    put: "if (order === undefined && facts.move.metadata.deletionTimestamp !== undefined) return { do: 'unguard' };",
  },
  {
    without: 'the guard of a real claim of this cluster whose data is to be kept',
    file: volumes,
    find: "return remoteOf(volume) === undefined ? [{ do: 'guard', claim: object }] : [{ do: 'release' }];",
    put: "return [{ do: 'erase', claim: object }];",
  },
  {
    without: 'the policy Retain on the real claim whose data is to be kept',
    file: volumes,
    find: "if (finalizers?.includes(guestVolume.finalizer)) return [...policy(observed), { do: 'erase', claim: object }];",
    put: 'if (finalizers?.includes(guestVolume.finalizer)) return ending(observed);',
  },
  {
    without: 'the end of a condition of growth that has ended at the provider',
    file: growth,
    find: ': (resizeConditions as readonly string[]).includes(type);',
    put: ': reason === waitsForClaim;',
    isSubtle: true,
  },
  {
    without: 'the end of the turn that has ended at the provider',
    file: growth,
    find: 'if (isSame && status?.allocatedResourceStatuses?.storage === turn) return undefined;',
    put: 'if (isSame) return undefined;',
    isSubtle: true,
  },
  {
    without:
      'the question to the provider whose watch shows the real claim as that of another claim, and the second look',
    file: remoteClaims,
    find: 'return home && claimUids.includes(home.uid) ? known : this',
    put: 'return home ? known : this',
    also: {
      file: 'agent/storage/volumes/controller.ts',
      find: 'if (actions.some(isFinal)) {',
      put: 'if (actions.length < 0) {',
    },
    foundBy: 'an undo without a copy, when the watch at the provider has not shown the switch yet',
  },
  {
    without: 'the 10 minutes that a claim has which was made late in the switch',
    file: switching,
    find: 'const late = isLate(facts) && isLate(facts, creationTimestamp);',
    put: 'const late = isLate(facts);',
    foundBy: 'a VolumeMove that is deleted when its switch has waited a quarter of an hour for a pod to end',
  },
  {
    without: 'the gate on pods of a claim that moves',
    file: 'agent/offloading/consumer/admission/pod.ts',
    find: '...(claims.moving && !isMover ? [{ name: moveGate, marked: isthmusLabel.waitsForMove }] : []),',
    put: '',
    isSubtle: true,
  },
  {
    without: 'another look at a claim that has grown since the last copy',
    file: switching,
    find: 'requestOf(old) !== requestOf(noteFrom(facts.move))',
    put: 'requestOf(old) === ""',
    isSubtle: true,
  },
  {
    without: 'the question whether a silent cluster has the other volume, before a copy goes',
    file: progress,
    find: "if (real === 'silent') return",
    put: "if (real === 'silent') return undefined; if (facts.nowMs < 0) return",
    foundBy:
      'an undo to a cluster that is silent from the switch on, whose VolumeMove is deleted: what was left is a record',
  },
  {
    without: 'the doubt about a cluster that says that it has nothing',
    file: progress,
    find: 'if (real === undefined) return `',
    put: 'if (real === undefined) return undefined; if (facts.nowMs < 0) return `',
    foundBy: 'the end of an undo window after the claim was deleted in the cluster that the move went to',
  },
  {
    without: 'the doubt about a claim that has lost its volume',
    file: progress,
    find: "return phase === 'Bound' ? undefined :",
    put: 'return real.metadata.name ? undefined :',
    foundBy: 'the end of an undo window after the claim lost its volume in the cluster that the move went to',
  },
  {
    without: 'the second question, when an undo window has ended',
    file: switching,
    find: "const isOrdered = end === 'Confirmed' && status.confirmed === true;",
    put: "const isOrdered = end === 'Confirmed';",
    foundBy: 'the end of an undo window in which the cluster that the move went to answers once, and is then silent',
  },
  {
    without: 'the refusal of a confirmation that comes before the switch',
    file: decide,
    find: "if (phase !== 'Undoable' && orderOf(facts) === 'confirm')",
    put: 'if (facts.nowMs < 0)',
  },
  {
    without: 'the distinction of a confirmation that was taken up from one that was refused',
    file: switching,
    find: "const isOrdered = end === 'Confirmed' && status.confirmed === true;",
    put: "const isOrdered = end === 'Confirmed' && facts.move.spec.order === 'confirm';",
  },
  {
    without: 'a new undo window after an undo that was refused',
    file: decide,
    find: 'undoUntil: windowFromNow(facts), message: `no undo:',
    put: 'message: `no undo:',
    foundBy: 'an undo that comes after the end of the window and is refused, because a bare pod uses the claim',
  },
  {
    without: 'a new undo window after an undo that was given up',
    file: switching,
    find: 'frozenAt: undefined,\n      undoUntil: windowFromNow(facts),',
    put: 'frozenAt: undefined,',
    foundBy: 'an undo that comes after the end of the window and whose copy breaks off again and again',
  },
  {
    without: 'a new undo window after an abort that came too late',
    file: decide,
    find: "undoUntil: windowFromNow(facts),\n      message: 'abort comes",
    put: "message: 'abort comes",
    foundBy:
      'an abort that comes after the switch and after the end of the undo window, which says that an undo is accepted',
  },
  {
    without: 'the copy that was compared before its source went',
    file: decide,
    find: "if (step && (step.do !== 'wait' || final === undefined || !hasEnded(final))) {",
    put: 'if (step) {',
    foundBy: 'a source that goes with its cluster in the moment in which the copy has been compared',
  },
];
