/** What a volume needs next, and above all when its data may go. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { decide, type Observed, type RealClaim } from './decide.ts';

const held = 'external-provisioner.volume.kubernetes.io/finalizer';
const volume = ({
  phase = 'Bound',
  policy = 'Delete',
  going = false,
  isHeld = true,
  remote = true,
  storage = '1Gi',
  annotations = { 'isthmus.dev/real-volume': 'real', 'isthmus.dev/real-storage-class': 'fast' },
}: Record<string, unknown> = {}): PersistentVolume =>
  ({
    metadata: {
      name: 'pvc-u',
      annotations,
      ...(going ? { deletionTimestamp: 'now' } : {}),
      finalizers: isHeld ? [held] : [],
    },
    spec: {
      persistentVolumeReclaimPolicy: policy,
      capacity: { storage },
      ...(remote
        ? { csi: { driver: 'storage.isthmus.dev', volumeHandle: 'prov/r/data' } }
        : { hostPath: { path: '/d' } }),
    },
    status: { phase },
  }) as unknown as PersistentVolume;
const home = (request = '1Gi', capacity = '1Gi', conditions: object[] = []): PersistentVolumeClaim =>
  ({
    metadata: { namespace: 'shop', name: 'data', uid: 'u' },
    spec: { resources: { requests: { storage: request } } },
    status: { capacity: { storage: capacity }, conditions },
  }) as unknown as PersistentVolumeClaim;
const claim = ({
  annotations = {},
  request = '1Gi',
  capacity = '1Gi',
  phase = 'Bound',
  ...metadata
}: Record<string, unknown> = {}): RealClaim => ({
  kind: 'there',
  object: {
    metadata: {
      namespace: 'r',
      name: 'data',
      annotations: { 'isthmus.dev/reclaim-policy': 'Delete', ...(annotations as object) },
      ...metadata,
    },
    spec: { storageClassName: 'fast', volumeName: 'real', resources: { requests: { storage: request } } },
    status: { phase, capacity: { storage: capacity } },
  } as unknown as PersistentVolumeClaim,
});
const look = (more: Partial<Observed> = {}) =>
  decide({ volume: volume(), home: home(), real: claim(), reachable: true, isLiqoctlMoving: false, nowMs: 0, ...more });
const steps = (more: Partial<Observed>): string[] => look(more).map((action) => action.do);
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
