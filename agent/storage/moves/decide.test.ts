/** Each wait of a move ends: what comes when the other side does not answer, when a volume is gone, or when the VolumeMove is deleted meanwhile. */
import { describe, expect, test } from 'vitest';
import type { PersistentVolume } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { moveFinalizer, storageAnnotation } from '#shared/domain/storage-keys.ts';
import { decide } from './decide.ts';
import { imageOf } from './progress.ts';
import { claim, deletionTimestamp, facts, phaseOf, since, volume } from './testing/move-facts.ts';

const held = { deletionTimestamp, finalizers: [moveFinalizer] };

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
