/** What becomes of the volume that a move has left: it goes only by an order or its policy, and an undo has its window. */
import { describe, expect, test } from 'vitest';
import { storageAnnotation } from '#shared/domain/storage-keys.ts';
import type { VolumeMove } from '#shared/schema/isthmus/volume-move.ts';
import { decide } from './decide.ts';
import type { Facts, Step } from './facts.ts';
import { claim, deletionTimestamp, facts, phaseOf, since, volume } from './testing/move-facts.ts';

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
