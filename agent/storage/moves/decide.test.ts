/** Each wait of a move ends: what comes when the other side does not answer, when a volume is gone, or when the VolumeMove is deleted meanwhile. */
import { describe, expect, test } from 'vitest';
import { timestamp } from '#kube/writes/conditions.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { moveFinalizer, storageAnnotation } from '#shared/domain/storage-keys.ts';
import type { MovePhase, VolumeMove, VolumeMoveStatus } from '#shared/schema/isthmus/volume-move.ts';
import { decide } from './decide.ts';
import type { Facts, Step } from './facts.ts';
import { imageOf } from './progress.ts';

const nowMs = Date.parse('2026-01-01T10:00:00Z');
const since = (minutes: number): string => timestamp(nowMs - minutes * 60_000);
const deletionTimestamp = since(1);

const volume = (name: string, more: { uid?: string; phase?: string; policy?: string; noted?: string } = {}) =>
  ({
    metadata: { name, ...(more.noted && { annotations: { [storageAnnotation.policyAfterMove]: more.noted } }) },
    spec: {
      persistentVolumeReclaimPolicy: more.policy ?? 'Retain',
      claimRef: { namespace: 'shop', name: 'data', ...(more.uid && { uid: more.uid }) },
    },
    status: { phase: more.phase ?? 'Released' },
  }) as unknown as PersistentVolume;
const claim = (uid: string, volumeName: string, metadata: object = {}): PersistentVolumeClaim =>
  ({
    metadata: { namespace: 'shop', name: 'data', uid, ...metadata },
    spec: { volumeName, resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Bound' },
  }) as unknown as PersistentVolumeClaim;
const held = { deletionTimestamp, finalizers: [moveFinalizer] };

function facts(
  phase: MovePhase,
  minutes: number,
  { isDeleted = false, status = {}, ...more }: Partial<Facts> & { isDeleted?: boolean; status?: object } = {},
): Facts {
  const move = {
    metadata: {
      namespace: 'shop',
      name: 'data',
      uid: 'm',
      finalizers: [moveFinalizer],
      ...(isDeleted && { deletionTimestamp }),
    },
    spec: { target: 'genoa', undoWindowSeconds: 60 },
    status: {
      phase,
      since: since(minutes),
      way: 'forth',
      claimUid: 'c',
      from: { at: 'milan', volume: 'a' },
      to: { at: 'genoa', volume: 'b' },
      claim: JSON.stringify({ spec: { resources: { requests: { storage: '1Gi' } } } }),
      ...status,
    } as VolumeMoveStatus,
  } as VolumeMove;
  const nothing = { claim: undefined, staging: undefined, from: undefined, to: undefined, refusal: undefined };
  const rest = { progress: undefined, silent: undefined, real: 'silent' as const, left: undefined, image: 'agent' };
  return { move, nowMs, ...nothing, ...rest, pods: [], keys: false, service: false, mountedBy: [], ...more };
}
const phaseOf = (step: Step): string => (step.do === 'status' ? step.status.phase : step.do);

describe('a switch whose new volume was deleted', () => {
  const from = volume('a', { uid: 'c', phase: 'Bound' });
  test.each([
    { what: 'a claim that waits for us', old: claim('c', 'a', held) },
    { what: 'a claim that has gone', old: undefined },
  ])('gives $what the volume that it had', ({ old }) => {
    expect(decide(facts('Switching', 0, { claim: old, from }))).toMatchObject({
      status: { phase: 'Switching', to: { volume: 'a' }, gaveUp: expect.stringMatching(/volume b, .* is gone/) },
    });
  });

  test('is aborted while the claim is as it was', () => {
    expect(phaseOf(decide(facts('Switching', 0, { claim: claim('c', 'a'), from })))).toBe('Aborting');
  });

  test('waits when there is no way back either, and lets claim and pods go when the VolumeMove is deleted', () => {
    const lost = { claim: claim('c', 'a', held), status: { gaveUp: 'the copy broke' } };
    expect(decide(facts('Switching', 0, lost))).toMatchObject({ on: expect.stringMatching(/delete this VolumeMove/) });
    expect(decide(facts('Switching', 0, { ...lost, isDeleted: true }))).toMatchObject({
      do: 'patchClaim',
      patch: { metadata: { finalizers: [] } },
    });
    expect(phaseOf(decide(facts('Switching', 0, { ...lost, claim: undefined, isDeleted: true })))).toBe('Keeping');
  });
});

describe('a cluster that does not answer', () => {
  const to = volume('b', { uid: 'n', phase: 'Bound' });

  test.each([
    { minutes: 1, is: 'wait' },
    { minutes: 11, is: 'Switching' },
  ])('about what has the old volume mounted is waited for 10 minutes (after $minutes: $is)', ({ minutes, is }) => {
    const old = claim('c', 'a', held);
    const step = decide(facts('Switching', minutes, { claim: old, from: volume('a'), to, mountedBy: 'unknown' }));
    expect(phaseOf(step)).toBe(is);
    if (step.do === 'status') expect(step.status).toMatchObject({ to: { volume: 'a' }, from: { volume: 'b' } });
  });

  test.each([
    { minutes: 1, is: 'wait' },
    { minutes: 11, is: 'Undoable' },
  ])('about the new volume is waited for 10 minutes (after $minutes: $is)', ({ minutes, is }) => {
    expect(phaseOf(decide(facts('Switching', minutes, { claim: claim('n', 'b'), to })))).toBe(is);
  });

  test('about the new volume loses no data: what was left is kept until an order, however long', () => {
    const step = decide(facts('Switching', 11, { claim: claim('n', 'b'), to, status: { undoUntil: since(60) } }));
    if (step.do !== 'status') throw new Error(step.do);
    expect(step.status).toMatchObject({ phase: 'Undoable', message: expect.stringMatching(/genoa does not say/) });
    const from = volume('a', { noted: 'Delete' });
    const later = facts('Undoable', 100_000, { claim: claim('n', 'b'), from, to, status: step.status });
    expect(phaseOf(decide(later))).toBe('wait');
    const confirmed = { ...later, move: { ...later.move, spec: { ...later.move.spec, order: 'confirm' as const } } };
    expect(
      phaseOf(
        decide({ ...confirmed, move: { ...confirmed.move, metadata: { ...later.move.metadata, generation: 2 } } }),
      ),
    ).toBe('Discarding');
  });

  test('while it is copied ends the move after 10 minutes', () => {
    const to = { ...volume('b'), spec: { capacity: { storage: '1Gi' } } } as PersistentVolume;
    const here = { claim: claim('c', 'a', { annotations: { [storageAnnotation.moving]: 'm' } }), to };
    for (const phase of ['Copying', 'FinalCopy'] as const) {
      expect(decide(facts(phase, 60, { ...here, silent: 'genoa' }))).toMatchObject({
        status: { phase, silentSince: since(0) },
      });
      const long = facts(phase, 60, { ...here, silent: 'genoa', status: { silentSince: since(11) } });
      expect(decide(long)).toMatchObject({
        status: { phase: 'Aborting', message: expect.stringMatching(/cluster genoa has not answered for 10 minutes/) },
      });
      const again = decide(facts(phase, 60, { ...here, status: { silentSince: since(11) } }));
      expect(again.do === 'status' && again.status.silentSince).toBeUndefined();
    }
  });
});

describe('what no order has named is not deleted before the other volume is seen', () => {
  const [left, to] = [volume('a', { noted: 'Delete' }), volume('b', { uid: 'n', phase: 'Bound' })];
  const real = claim('r', 'disk');
  const going = claim('r', 'disk', { deletionTimestamp });
  const of = (more: Partial<Facts> & { isDeleted?: boolean; status?: object }, minutes = 100_000) =>
    decide(facts('Discarding', minutes, { from: left, to, claim: claim('n', 'b'), ...more }));
  const ends = [
    { what: 'the copy, after an undo', status: { way: 'back' } },
    { what: 'the copy, after a switch that was given up', status: { gaveUp: 'waited in vain' } },
  ];

  test.each(ends)('$what: kept while that cluster is silent or has nothing', ({ status }) => {
    expect(of({ status })).toMatchObject({ on: expect.stringMatching(/genoa does not say .* volume a is kept/) });
    expect(of({ status, real: undefined })).toMatchObject({ on: expect.stringMatching(/says that it does not have/) });
    expect(of({ status, real: going })).toMatchObject({ on: expect.stringMatching(/is being deleted/) });
    expect(of({ status, real })).toMatchObject({
      do: 'patchVolume',
      patch: { spec: { persistentVolumeReclaimPolicy: 'Delete' } },
    });
  });

  test.each(ends)('$what: becomes a RetainedVolume when the VolumeMove is deleted', ({ status }) =>
    expect(phaseOf(of({ status, isDeleted: true }))).toBe('Keeping'),
  );

  test('what was left, at the end of the window: an undo goes on being accepted until the cluster answers', () => {
    const over = { from: left, to, claim: claim('n', 'b'), status: { undoUntil: since(1) } };
    for (const unseen of ['silent', undefined, going] as const)
      expect(decide(facts('Undoable', 60, { ...over, real: unseen }))).toMatchObject({
        status: { phase: 'Undoable', undoUntil: since(-10), message: expect.stringMatching(/is kept/) },
      });
    expect(phaseOf(decide(facts('Undoable', 60, { ...over, isDeleted: true })))).toBe('Keeping');
    expect(phaseOf(decide(facts('Undoable', 60, { ...over, real })))).toBe('Discarding');
  });

  test('what was left, when the new one goes right after the end of the window: it can be undone again', () => {
    for (const unseen of ['silent', undefined, going] as const) {
      expect(of({ real: unseen })).toMatchObject({
        status: { phase: 'Undoable', undoUntil: since(-10), message: expect.stringMatching(/is kept/) },
      });
      expect(phaseOf(of({ real: unseen, isDeleted: true }))).toBe('Keeping');
      const here = { from: left, to, claim: claim('n', 'b'), real: unseen };
      expect(decide(facts('Discarding', 1, { ...here, status: { confirmed: true } }))).toMatchObject({
        do: 'patchVolume',
        patch: { spec: { persistentVolumeReclaimPolicy: 'Delete' } },
      });
    }
    expect(of({ real })).toMatchObject({ do: 'patchVolume' });
  });

  test.each(['Lost', 'Pending', undefined])('a real claim that is %s has no volume', (phase) => {
    const unbound = { ...real, status: phase === undefined ? {} : { phase } };
    const over = { from: left, to, claim: claim('c', 'b'), status: { undoUntil: since(1) }, real: unbound };
    expect(decide(facts('Undoable', 60, over))).toMatchObject({
      status: { phase: 'Undoable', message: expect.stringMatching(`the claim of volume b is ${phase ?? 'Pending'}:`) },
    });
  });

  test('what was left: says whether an undo is possible, and where the new one is missing', () => {
    const message = (more: Partial<Facts>): string => {
      const step = decide(facts('Undoable', 60, { from: left, status: { undoUntil: since(1) }, ...more }));
      return (step.do === 'status' && step.status.message) || step.do;
    };
    expect(message({ to, claim: claim('c', 'b') })).toMatch(/genoa does not say .* an undo goes on being accepted/);
    const lost = message({ to, claim: undefined });
    expect(lost).toMatch(/claim data is gone.* confirm deletes volume a, and deleting this VolumeMove keeps it/);
    expect(lost).not.toMatch(/undo goes on/);
    expect(message({ to: undefined, claim: claim('c', 'b') })).toMatch(/^PersistentVolume b is gone here:/);
  });

  test('a switch says whether its cluster is silent or does not have the volume', () => {
    const step = decide(facts('Switching', 11, { claim: claim('n', 'b'), to, real: undefined }));
    expect(step).toMatchObject({ status: { phase: 'Undoable', message: expect.stringMatching(/does not have/) } });
  });
});

test('a claim that is not bound to its new volume is let go after 10 minutes when the VolumeMove is deleted', () => {
  const unbound = { claim: claim('n', 'other'), to: volume('b') };
  expect(phaseOf(decide(facts('Switching', 60, unbound)))).toBe('wait');
  expect(phaseOf(decide(facts('Switching', 1, { ...unbound, isDeleted: true })))).toBe('wait');
  expect(phaseOf(decide(facts('Switching', 60, { ...unbound, isDeleted: true })))).toBe('Keeping');
});

describe('a claim that the switch made a minute ago, after an hour of waiting for pods to end,', () => {
  test('is bound and its volume gets its policy back before the VolumeMove, which was deleted, goes', () => {
    const of = (phase: string, minutes = 1) => ({
      claim: claim('n', 'b', { creationTimestamp: since(minutes) }),
      to: volume('b', { uid: phase === 'Bound' ? 'n' : '', phase, noted: 'Delete' }),
      real: claim('r', 'disk', {
        annotations: { [storageAnnotation.claim]: 'shop/data', [storageAnnotation.claimUid]: 'n' },
      }),
      isDeleted: true,
    });
    expect(phaseOf(decide(facts('Switching', 60, of('Released'))))).toBe('wait');
    expect(decide(facts('Switching', 60, of('Bound')))).toMatchObject({
      do: 'patchVolume',
      patch: { spec: { persistentVolumeReclaimPolicy: 'Delete' } },
    });
    expect(phaseOf(decide(facts('Switching', 60, of('Released', 11))))).toBe('Keeping');
  });

  test('waits for the cluster of its volume to say that it has it', () => {
    const made = claim('n', 'b', { creationTimestamp: since(1) });
    const to = volume('b', { uid: 'n', phase: 'Bound' });
    expect(decide(facts('Switching', 60, { claim: made, to }))).toMatchObject({
      on: 'cluster genoa to say that it has the volume',
    });
  });
});

describe('the end of a move waits 10 minutes for data to go, which then goes when its cluster answers', () => {
  const given = volume('a', { policy: 'Delete' });
  const going = volume('a', { noted: 'Delete' });
  Object.assign(going.metadata, { deletionTimestamp });
  test.each([
    { phase: 'Discarding', more: { from: given }, is: 'Confirmed' },
    { phase: 'Discarding', more: { from: given, status: { way: 'back' } }, is: 'Undone' },
    { phase: 'Keeping', more: { from: going, isDeleted: true }, is: 'unguard' },
    { phase: 'Aborting', more: { to: given }, is: 'Aborted' },
  ] as const)('in $phase', ({ phase, more, is }) => {
    expect(phaseOf(decide(facts(phase, 1, more)))).toBe('wait');
    expect(phaseOf(decide(facts(phase, 11, more)))).toBe(is);
  });
});

describe('the volume that was left goes by the policy that it had', () => {
  test('Delete, before the move retained it', () => {
    expect(
      decide(
        facts('Discarding', 0, { from: volume('a', { noted: 'Delete' }), to: volume('b'), real: claim('r', 'disk') }),
      ),
    ).toMatchObject({
      patch: {
        metadata: { annotations: { [storageAnnotation.policyAfterMove]: null } },
        spec: { persistentVolumeReclaimPolicy: 'Delete' },
      },
    });
  });
  test('Retain, where the move had nothing to change: by its class, or because a person took the note of the move off', () => {
    expect(decide(facts('Discarding', 0, { from: volume('a') }))).toMatchObject({
      status: { phase: 'Confirmed', message: expect.stringMatching(/volume a stays: its reclaim policy is Retain/) },
    });
  });
});

describe('an undo that is not done leaves a whole window for another order, when the first has passed', () => {
  const [left, to] = [volume('a', { noted: 'Delete' }), volume('b', { uid: 'c', phase: 'Bound' })];
  const windows = [
    { undoUntil: since(5), until: since(-1) },
    { undoUntil: undefined, until: undefined },
  ];
  const next = (step: Step): unknown => step.do === 'status' && [step.status.phase, step.status.undoUntil];

  test.each(windows)('refused (until $undoUntil)', ({ undoUntil, until }) => {
    const before = facts('Undoable', 60, { from: left, to, claim: claim('c', 'b'), status: { undoUntil } });
    const { metadata, spec } = before.move;
    const ordered = {
      ...before.move,
      metadata: { ...metadata, generation: 2 },
      spec: { ...spec, order: 'undo-copy-back' as const },
    };
    const step = decide({ ...before, move: ordered });
    expect(step).toMatchObject({ status: { message: expect.stringMatching(/^no undo: /), settledGeneration: 2 } });
    expect(next(step)).toEqual(['Undoable', until]);
    const status = step.do === 'status' ? step.status : undefined;
    const real = claim('r', 'disk');
    expect(phaseOf(decide({ ...before, real, move: { ...ordered, status } as VolumeMove }))).toBe('wait');
  });

  test.each(windows)('answered an abort that came too late (until $undoUntil)', ({ undoUntil, until }) => {
    const before = facts('Undoable', 90, { from: left, to, claim: claim('n', 'b'), status: { undoUntil } });
    const { metadata, spec } = before.move;
    const ordered = { ...before.move, metadata: { ...metadata, generation: 2 }, spec: { ...spec, order: 'abort' } };
    const step = decide({ ...before, move: ordered as VolumeMove });
    expect(step).toMatchObject({
      status: { message: expect.stringMatching(/undo is accepted/), settledGeneration: 2 },
    });
    expect(next(step)).toEqual(['Undoable', until]);
    const status = step.do === 'status' ? step.status : undefined;
    const look = { ...before, real: claim('r', 'disk'), move: { ...ordered, status } as VolumeMove };
    expect(phaseOf(decide(look))).toBe('wait');
  });

  const back = { way: 'back', gaveUp: 'the copy broke', from: { at: 'genoa', volume: 'b' } };
  test.each(windows)('ended before the switch (until $undoUntil)', ({ undoUntil, until }) => {
    const status = { ...back, to: { at: 'milan', volume: 'a' }, undoUntil };
    expect(next(decide(facts('Aborting', 1, { from: to, to: left, claim: claim('c', 'b'), status })))).toEqual([
      'Undoable',
      until,
    ]);
  });

  test.each(windows)('ended by a switch back (until $undoUntil)', ({ undoUntil, until }) => {
    const status = { ...back, from: { at: 'milan', volume: 'a' }, to: { at: 'genoa', volume: 'b' }, undoUntil };
    const annotations = { [storageAnnotation.claim]: 'shop/data', [storageAnnotation.claimUid]: 'n' };
    const there = { from: left, to: volume('b', { uid: 'n', phase: 'Bound' }), claim: claim('n', 'b') };
    const real = claim('r', 'disk', { annotations });
    expect(next(decide(facts('Switching', 1, { ...there, real, status })))).toEqual(['Undoable', until]);
  });
});

test('a copy that was compared is gone to although the cluster of the other volume has gone silent', () => {
  const pod = (role: string, status: object): Pod =>
    ({
      metadata: { name: `move-m-${role}`, uid: role, creationTimestamp: since(20) },
      spec: { containers: [{ name: 'mover', image: 'of-before' }] },
      status,
    }) as unknown as Pod;
  const gone = { phase: 'Running', conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: since(5) }] };
  const ended = (phase: string, message: object): object => ({
    phase,
    containerStatuses: [{ state: { terminated: { message: JSON.stringify(message) } } }],
  });
  const verified = { ok: true, verified: { files: 3, bytes: 9 } };
  const to = { ...volume('b'), spec: { capacity: { storage: '1Gi' } } } as PersistentVolume;
  const staging = claim('s', 'b', { name: 'move-m' });
  const of = (final: object) =>
    facts('FinalCopy', 11, {
      ...{ claim: claim('c', 'a'), staging, to, silent: 'milan', mountedBy: 'unknown', keys: true, service: true },
      pods: [pod('send', gone), pod('final', final)],
      status: { silentSince: since(1) },
    });
  expect(decide(of(ended('Succeeded', verified)))).toMatchObject({ status: { phase: 'Switching', verifiedBytes: 9 } });
  expect(phaseOf(decide(of({ phase: 'Running' })))).toBe('Aborting');
  // An agent that was updated meanwhile.
  expect(imageOf(of({}), 'final')).toBe('of-before');
  expect(imageOf(of({}), 'send')).toBe('agent');
  expect(imageOf({ ...of({}), pods: [] }, 'live')).toBe('agent');
});
