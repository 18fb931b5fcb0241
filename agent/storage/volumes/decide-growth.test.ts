/** What a volume needs when its claim asks for more, and what the claim is told meanwhile. */
import { describe, expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import type { Observed, RealClaim } from './decide.ts';
import { claim, home, look, steps, volume } from './testing/seen-volume.ts';

describe('growth', () => {
  test.each([
    { when: 'the claim asks for more', home: home('2Gi'), real: claim(), size: '1Gi', does: ['status', 'grow'] },
    {
      when: 'the real claim has no volume yet',
      home: home('2Gi'),
      real: claim({ phase: 'Pending' }),
      size: '1Gi',
      does: ['status'],
    },
    {
      when: 'the real claim was asked',
      home: home('2Gi'),
      real: claim({ request: '2Gi' }),
      size: '1Gi',
      does: ['status'],
    },
    {
      when: 'the real claim has grown',
      home: home('2Gi'),
      real: claim({ request: '2Gi', capacity: '2Gi' }),
      size: '1Gi',
      does: ['status', 'capacity'],
    },
    {
      when: 'the volume has grown',
      home: home('2Gi'),
      real: claim({ request: '2Gi', capacity: '2Gi' }),
      size: '2Gi',
      does: ['status'],
    },
  ])('at a provider, when $when: $does', ({ home: of, real, size, does }) =>
    expect(steps({ volume: volume({ storage: size }), home: of, real })).toEqual(does),
  );

  test('ends with the new size and without the condition', () => {
    const resizing = { type: 'Resizing', status: 'True', reason: 'WaitingForRealClaim', lastTransitionTime: 'x' };
    const [action] = look({
      volume: volume({ storage: '2Gi' }),
      home: home('2Gi', '1Gi', [resizing]),
      real: claim({ request: '2Gi', capacity: '2Gi' }),
    }).slice(-1);
    expect(action).toMatchObject({ do: 'status', patch: { capacity: { storage: '2Gi' } } });
    const { conditions } = (action as unknown as { patch: { conditions: { type: string }[] } }).patch;
    expect(conditions).toEqual([]);
    const grown = { volume: volume({ storage: '2Gi' }), real: claim({ request: '2Gi', capacity: '2Gi' }) };
    expect(look({ ...grown, home: home('2Gi', '2Gi', conditions) })).toEqual([]);
    // Also when the agent ended between the two.
    expect(look({ ...grown, home: home('2Gi', '2Gi', [...conditions, resizing]) })).toMatchObject([
      { do: 'status', patch: { conditions } },
    ]);
  });

  test('in this cluster the volume grows as soon as the real one has, and the kubelet does the rest', () => {
    const source = { spec: { capacity: { storage: '2Gi' } } } as unknown as PersistentVolume;
    const real = claim({ request: '2Gi' });
    expect(steps({ volume: volume({ remote: false }), home: home('2Gi'), real, source })).toEqual([
      'status',
      'capacity',
    ]);
    const [said] = look({ volume: volume({ remote: false, storage: '2Gi' }), home: home('2Gi'), real, source });
    expect(said).toMatchObject({ patch: { conditions: [{ type: 'FileSystemResizePending', status: 'True' }] } });
  });

  const growing = (request: string, storage?: string, turn?: string): PersistentVolumeClaim => {
    const of = home(request);
    const said = {
      ...(storage && { allocatedResources: { storage } }),
      ...(turn && { allocatedResourceStatuses: { storage: turn } }),
    };
    return { ...of, status: { ...of.status, ...said } } as PersistentVolumeClaim;
  };
  const said = (more: Partial<Observed>) =>
    look(more).flatMap((action) => {
      if (action.do !== 'status') return [];
      const { allocatedResources, allocatedResourceStatuses } = action.patch as Record<string, { storage?: unknown }>;
      return allocatedResources || allocatedResourceStatuses
        ? [{ of: allocatedResources?.storage, turn: allocatedResourceStatuses?.storage }]
        : [];
    });
  const [controller, due, works] = ['ControllerResizeInProgress', 'NodeResizePending', 'NodeResizeInProgress'];
  const source = { spec: { capacity: { storage: '2Gi' } } } as unknown as PersistentVolume;
  const here = { volume: volume({ remote: false, storage: '2Gi' }), real: claim({ request: '2Gi' }), source };

  test.each([
    { when: 'nothing was asked for', look: { home: growing('2Gi') }, says: [] },
    {
      when: 'it is just being bound',
      look: { ...here, home: { ...growing('2Gi'), status: { phase: 'Pending' } } },
      says: [],
    },
    {
      when: 'the real claim was asked',
      look: { home: growing('2Gi'), real: claim({ request: '2Gi' }) },
      says: [{ of: '2Gi', turn: controller }],
    },
    {
      when: 'that was said',
      look: { home: growing('2Gi', '2Gi', controller), real: claim({ request: '2Gi' }) },
      says: [],
    },
    {
      when: 'a provider has grown it',
      look: {
        volume: volume({ storage: '2Gi' }),
        home: growing('2Gi', '2Gi', controller),
        real: claim({ request: '2Gi', capacity: '2Gi' }),
      },
      says: [{ of: undefined, turn: null }],
    },
    {
      when: 'it asks for less again',
      look: { home: growing('1Gi', '2Gi', controller), real: claim({ request: '2Gi' }) },
      says: [{ of: undefined, turn: null }],
    },
    {
      when: 'the volume here is larger',
      look: { ...here, home: growing('2Gi', '2Gi', controller) },
      says: [{ of: undefined, turn: due }],
    },
    {
      when: 'an earlier agent said nothing',
      look: { ...here, home: growing('2Gi') },
      says: [{ of: '2Gi', turn: due }],
    },
    { when: 'the kubelet is told', look: { ...here, home: growing('2Gi', '2Gi', due) }, says: [] },
    { when: 'the kubelet works', look: { ...here, home: growing('2Gi', '2Gi', works) }, says: [] },
    {
      when: 'it is to be still larger while the kubelet works',
      look: { ...here, home: growing('3Gi', '2Gi', works), real: claim({ request: '3Gi' }) },
      says: [],
    },
    {
      when: 'it is to be still larger before the kubelet began',
      look: { ...here, home: growing('3Gi', '2Gi', due), real: claim({ request: '3Gi' }) },
      says: [{ of: '3Gi', turn: controller }],
    },
  ])('of a claim, when $when, is told as $says', ({ look: seen, says }) => expect(said(seen)).toEqual(says));

  test('in this cluster is asked of the real claim, too, when the resizer of the driver was first', () => {
    const does = (real: RealClaim) =>
      look({ ...here, home: growing('2Gi', '2Gi', due), real }).map((action) => action.do);
    expect(does(claim())).toContain('grow');
    expect(does(claim({ request: '2Gi' }))).not.toContain('grow');
    expect(does(claim({ request: '2Gi' }))).not.toContain('capacity');
    expect(does(claim({ capacity: '2Gi' }))).not.toContain('grow');
  });

  test('is no condition of a claim that is just being bound', () => {
    const unbound = { ...home(), status: { phase: 'Pending' } } as PersistentVolumeClaim;
    const told = look({ volume: volume({ remote: false }), home: unbound, source });
    expect(told.flatMap((action) => (action.do === 'status' ? Object.keys(action.patch) : []))).toEqual(['capacity']);
  });

  test('is told before the volume says that it is larger: a kubelet reads both', () => {
    const grows = look({ home: home('2Gi'), real: claim({ request: '2Gi', capacity: '2Gi' }) });
    expect(grows.map(({ do: what }) => what)).toEqual(['status', 'capacity']);
  });
});
