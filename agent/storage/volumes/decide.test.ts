/** What a volume needs next, and above all when its data may go. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Observed, RealClaim } from './decide.ts';
import { claim, home, look, steps, volume } from './testing/seen-volume.ts';

const guarded = 'isthmus.dev/guest-claim';
const marked = { annotations: { 'isthmus.dev/data': 'delete' } };
const gone: RealClaim = { kind: 'gone', why: 'ended', kept: true };

describe('the end of a volume', () => {
  const over = (more: Record<string, unknown> = {}) => volume({ phase: 'Released', ...more });
  test.each([
    { when: 'its claim is gone', of: over(), real: claim(), does: ['mark', 'erase'] },
    { when: 'that is marked already', of: over(), real: claim(marked), does: ['erase'] },
    {
      when: 'it was retained for a while',
      of: over(),
      real: claim({ annotations: { ...marked.annotations, 'isthmus.dev/reclaim-policy': 'Retain' } }),
      does: ['mark', 'erase'],
    },
    {
      when: 'the real claim is going',
      of: over(),
      real: claim({ ...marked, deletionTimestamp: 'now' }),
      does: ['wait'],
    },
    { when: 'the real claim is gone', of: over(), real: { kind: 'gone', why: 'x' } as const, does: ['finish'] },
    { when: 'the provider is gone', of: over(), real: gone, does: ['tell', 'finish'] },
    { when: 'the provider cannot be asked', of: over(), real: { kind: 'unknown', why: 'x' } as const, does: ['wait'] },
    {
      when: 'it is retained',
      of: over({ policy: 'Retain' }),
      real: claim({ annotations: { 'isthmus.dev/reclaim-policy': 'Retain' } }),
      does: [],
    },
    {
      when: 'it is retained and deleted by hand',
      of: over({ policy: 'Retain', going: true }),
      real: claim(),
      does: ['release'],
    },
    {
      when: 'it is retained and deleted by hand, of a provider that keeps the data of guests',
      of: over({ policy: 'Retain', going: true }),
      real: claim({ finalizers: [guarded] }),
      does: ['mark', 'erase'],
    },
    {
      when: 'it is retained and deleted by hand, of this cluster',
      of: over({ policy: 'Retain', going: true, remote: false }),
      real: claim(),
      does: ['guard'],
    },
    {
      when: 'it is retained and deleted by hand, of this cluster, and its real claim is guarded',
      of: over({ policy: 'Retain', going: true, remote: false }),
      real: claim({ finalizers: [guarded], annotations: { 'isthmus.dev/reclaim-policy': 'Retain' } }),
      does: ['erase'],
    },
    {
      when: 'it is retained and deleted by hand, and the provider cannot be asked',
      of: over({ policy: 'Retain', going: true }),
      real: { kind: 'unknown', why: 'x' } as const,
      does: ['wait'],
    },
    {
      when: 'it is retained and deleted by hand, and the peering has ended',
      of: over({ policy: 'Retain', going: true }),
      real: gone,
      does: ['release'],
    },
    { when: 'it is deleted by hand', of: over({ going: true }), real: claim(), does: ['mark', 'erase'] },
    {
      when: 'it is deleted by hand while its claim uses it',
      of: volume({ going: true }),
      real: claim(),
      does: [],
    },
    { when: 'nothing holds it', of: over({ going: true, isHeld: false }), real: claim(), does: [] },
    {
      when: 'the agent was taken out of the cluster and is back',
      of: volume({ isHeld: false }),
      real: claim(),
      does: ['hold'],
    },
  ])('when $when: $does', ({ of, real, does }) => expect(steps({ volume: of, real })).toEqual(does));

  const handedOver = { 'isthmus.dev/handed-over': 'liqoctl-move-volume' };
  const isLiqoctlMoving = true;
  test.each([
    { when: 'it is over', of: over(), does: ['hand-over', 'tell'] },
    { when: 'it was deleted by hand', of: over({ going: true }), does: ['hand-over', 'tell'] },
    { when: 'its claim is there', of: volume(), does: [] },
    { when: 'it is retained', of: over({ policy: 'Retain' }), does: ['mark'] },
    { when: 'it was handed over', of: over({ policy: 'Retain', annotations: handedOver }), does: ['delete'] },
    {
      when: 'it was handed over, and the agent was taken out of the cluster and is back',
      of: over({ policy: 'Retain', annotations: handedOver, isHeld: false }),
      does: ['hold'],
    },
  ])('B130 while `liqoctl move volume` is at work, when $when: $does', ({ of, does }) =>
    expect(steps({ volume: of, isLiqoctlMoving })).toEqual(does),
  );
  test('B130 a volume that was handed over goes that way also when liqoctl has ended', () => {
    expect(steps({ volume: over({ policy: 'Retain', annotations: handedOver }) })).toEqual(['delete']);
    const going = over({ policy: 'Retain', annotations: handedOver, going: true, remote: false });
    expect(steps({ volume: going })).toEqual(['guard']);
    expect(steps({ volume: going, real: claim({ finalizers: [guarded] }) })).toEqual(['mark', 'erase']);
    expect(steps({ volume: going, real: gone })).toEqual(['release']);
  });

  test('data goes only when the volume is over and its policy is Delete, and never before the provider is told so', () => {
    const arbitrary = fc.record({
      phase: fc.constantFrom('Bound', 'Released', 'Available', 'Pending', 'Failed'),
      policy: fc.constantFrom('Delete', 'Retain', 'Recycle'),
      going: fc.boolean(),
      isHeld: fc.boolean(),
      isMarked: fc.boolean(),
      isGuarded: fc.boolean(),
      remote: fc.boolean(),
      request: fc.constantFrom('1Gi', '2Gi'),
      isMoving: fc.boolean(),
    });
    fc.assert(
      fc.property(arbitrary, ({ isMarked, isGuarded, request, isMoving, ...of }) => {
        const real = claim({ ...(isMarked && marked), finalizers: isGuarded ? [guarded] : [] });
        const does = look({ volume: volume(of), home: home(request), real, isLiqoctlMoving: isMoving });
        const erases = does.findIndex((action) => action.do === 'erase');
        const isOver = ['Released', 'Failed'].includes(of.phase) || (of.going && of.phase !== 'Bound');
        if (erases >= 0 && of.policy !== 'Delete') {
          // There is no order to delete the data: the real claim is one whose data is kept, and says so first.
          expect([isOver, of.going, isGuarded]).toEqual([true, true, true]);
          expect(does[erases - 1]).toMatchObject({
            do: 'mark',
            annotations: { 'isthmus.dev/reclaim-policy': 'Retain' },
          });
        } else if (erases >= 0) {
          expect([isOver, isMoving]).toEqual([true, false]);
          if (!isMarked)
            expect(does[erases - 1]).toMatchObject({ do: 'mark', annotations: { 'isthmus.dev/data': 'delete' } });
        } else {
          const marks = does.filter((action) => action.do === 'mark' && 'isthmus.dev/data' in action.annotations);
          expect(marks).toEqual([]);
        }
        // Nothing lets go of the volume while its real claim is there and its policy is Delete.
        if (of.policy === 'Delete')
          expect(does.some(({ do: what }) => what === 'finish' || what === 'release')).toBe(false);
      }),
    );
  });
});

describe('what a claim says of its volume at a provider', () => {
  const conditions = (more: Partial<Observed>) => {
    const found = look(more).find((action) => action.do === 'status');
    return (
      (found as { patch: { conditions?: { type: string; status: string; reason: string }[] } } | undefined)?.patch
        .conditions ?? []
    ).map(({ type, status, reason }) => `${type.slice(12)} ${status} ${reason}`);
  };
  test.each([
    { real: claim(), says: [] },
    { real: claim({ phase: 'Pending' }), says: ['RemoteBound False Pending'] },
    { real: claim({ phase: 'Lost' }), says: ['RemoteBound False Lost'] },
    { real: { kind: 'gone', why: 'x' } as const, says: ['RemoteBound False RemoteLost'] },
    { real: { kind: 'unknown', why: 'x' } as const, says: [] },
    { real: claim(), reachable: false, says: ['Reachable False ProviderDoesNotAnswer'] },
  ])('$says', ({ real, reachable = true, says }) => expect(conditions({ real, reachable })).toEqual(says));

  const pending = { type: 'isthmus.dev/RemoteBound', status: 'False', reason: 'Pending', lastTransitionTime: 'x' };
  test.each([
    { when: 'the claim there has its volume', real: claim(), left: [] },
    { when: 'nothing is known of it', real: { kind: 'unknown', why: 'x' } as const, left: undefined },
    { when: 'the volume is of this cluster', of: volume({ remote: false }), real: claim(), left: [] },
  ])('that it waits is said until it does not: $when', ({ of = volume(), real, left }) => {
    const found = look({ volume: of, home: home('1Gi', '1Gi', [pending]), real }).find(
      ({ do: what }) => what === 'status',
    );
    expect((found as { patch: { conditions?: unknown } } | undefined)?.patch.conditions).toEqual(left);
  });

  test('the volume here says for good which one it stands for, and of which class that is', () => {
    const said = { 'isthmus.dev/real-volume': 'real', 'isthmus.dev/real-storage-class': 'fast' };
    const blank = volume({ annotations: {} });
    expect(look({ volume: blank })).toEqual([{ do: 'note', annotations: said }]);
    expect(look({ volume: volume({ annotations: said }) })).toEqual([]);
    expect(steps({ volume: blank, real: claim({ phase: 'Pending' }) })).toEqual(['status']);
    expect(steps({ volume: volume({ annotations: said }), real: gone })).toEqual(['status', 'tell']);
    expect(steps({ volume: volume({ annotations: {}, remote: false }) })).toEqual([]);
    const long = claim();
    if (long.kind === 'there' && long.object.spec) long.object.spec.volumeName = 'x'.repeat(254);
    expect(look({ volume: blank, real: long })).toEqual([
      { do: 'note', annotations: { 'isthmus.dev/real-storage-class': 'fast' } },
    ]);
  });

  test('a policy that was changed here is noted there', () => {
    expect(look({ volume: volume({ policy: 'Retain' }) })[0]).toMatchObject({
      do: 'mark',
      annotations: { 'isthmus.dev/reclaim-policy': 'Retain' },
    });
  });
});
