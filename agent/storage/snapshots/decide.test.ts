/** The next step of a snapshot of a volume at a provider, and that nothing there goes without order. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#shared/domain/snapshot-kinds.ts';
import { type Action, decide, nextLookMs, type Observed, placeOf, type Source, type Taken } from './decide.ts';

const bound = 'snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection';
const beingDeleted = { 'snapshot.storage.kubernetes.io/volumesnapshot-being-deleted': 'yes' };
const at = { provider: 'milan', namespace: 'shop-rome', name: 'snapshot-u1' };
const nowMs = Date.parse('2026-01-02T03:04:05Z');

const content = (more: object = {}, spec: object = {}, status?: object): VolumeSnapshotContent =>
  ({
    metadata: { name: 'snapcontent-u1', uid: 'c1', finalizers: [bound], ...more },
    spec: {
      driver: 'storage.isthmus.dev',
      deletionPolicy: 'Delete',
      source: { volumeHandle: 'milan/shop-rome/db' },
      volumeSnapshotRef: { namespace: 'shop', name: 'monday', uid: 'u1' },
      ...spec,
    },
    ...(status && { status }),
  }) as unknown as VolumeSnapshotContent;

const snapshot = (more: object = {}, status?: object): VolumeSnapshot =>
  ({
    metadata: {
      namespace: 'shop-rome',
      name: 'snapshot-u1',
      annotations: { 'isthmus.dev/snapshot': 'shop/monday', 'isthmus.dev/snapshot-uid': 'u1' },
      ...more,
    },
    ...(status && { status }),
  }) as unknown as VolumeSnapshot;
const there = (more: object = {}, status?: object): Taken => ({ kind: 'there', object: snapshot(more, status) });
const absent: Taken = { kind: 'absent' };
const ready: Source = { kind: 'ready', claimName: 'db' };
const look = (observed: Partial<Observed>): readonly Action[] =>
  decide({ content: content(), at, taken: absent, nowMs, ...observed });
const says = (message: string, more: object = {}) => ({
  do: 'status',
  patch: { readyToUse: false, error: { message, time: '2026-01-02T03:04:05Z' }, ...more },
});
const going = { deletionTimestamp: 'now', annotations: beingDeleted };

describe('a content that lives', () => {
  test('waits for its finalizer, without which it could go while its snapshot is being taken', () => {
    expect(look({ content: content({ finalizers: [] }), source: ready })).toEqual([]);
  });

  test('is taken once, of a claim that has its volume', () => {
    expect(look({ source: ready })).toEqual([{ do: 'take', at, claimName: 'db' }]);
  });

  test('says what it waits for, and what a person has to do', () => {
    expect(look({ source: { kind: 'waits', on: 'a volume' } })).toEqual([
      says('waiting for a volume'),
      { do: 'wait', on: 'a volume' },
    ]);
    expect(look({ source: { kind: 'refused', why: 'no such volume' } })).toEqual([says('no such volume')]);
    expect(look({ taken: { kind: 'unknown', on: 'the connection' } })).toEqual([
      says('waiting for the connection'),
      { do: 'wait', on: 'the connection' },
    ]);
    expect(look({ taken: { kind: 'forbidden', why: 'the right' } })[0]).toEqual(says('waiting for the right'));
  });

  test('says nothing twice', () => {
    const status = { readyToUse: false, error: { message: 'no such volume', time: 'then' } };
    expect(look({ content: content({}, {}, status), source: { kind: 'refused', why: 'no such volume' } })).toEqual([]);
  });

  test('of a volume of this cluster is refused by its field', () => {
    const local = content({}, { source: { volumeHandle: 'vol-1' } });
    expect(look({ content: local, at: undefined })).toEqual([
      says(
        'spec.source.volumeHandle is vol-1, which is not at a provider: accepted is a VolumeSnapshotClass of the driver that has made the volume',
      ),
    ]);
  });

  test('says what its provider says, in the units of a content', () => {
    const waits = { do: 'wait', on: 'VolumeSnapshot shop-rome/snapshot-u1 at cluster milan to be ready to use' };
    expect(look({ taken: there() })).toEqual([{ do: 'status', patch: { readyToUse: false } }, waits]);
    const failed = { error: { message: 'no class' } };
    expect(look({ taken: there({}, failed) })).toEqual([says('cluster milan: no class'), waits]);
    const cut = { creationTime: '2026-01-02T03:04:05Z', readyToUse: false, restoreSize: '1Gi' };
    const handle = 'milan/shop-rome/snapshot-u1';
    const status = { snapshotHandle: handle, creationTime: nowMs * 1e6, restoreSize: 2 ** 30 };
    expect(look({ taken: there({}, cut) })).toEqual([{ do: 'status', patch: { readyToUse: false, ...status } }, waits]);
    const before = content({}, {}, { ...status, readyToUse: false, error: { message: 'x' } });
    expect(look({ content: before, taken: there({}, { ...cut, readyToUse: true }) })).toEqual([
      { do: 'status', patch: { readyToUse: true, error: null } },
    ]);
    const settled = content({}, {}, { ...status, readyToUse: true });
    expect(look({ content: settled, taken: there({}, { ...cut, readyToUse: true }) })).toEqual([]);
  });

  test('is never taken again once it was cut, or names its snapshot itself', () => {
    const had = content({}, {}, { snapshotHandle: 'milan/shop-rome/snapshot-u1', readyToUse: true });
    const lost = says('there is no VolumeSnapshot shop-rome/snapshot-u1 at cluster milan; it is never taken again');
    expect(look({ content: had, source: ready })).toEqual([lost]);
    const named = content({}, { source: { snapshotHandle: 'milan/shop-rome/snapshot-u1' } });
    expect(look({ content: named, source: ready })).toEqual([lost]);
  });

  test('has no snapshot of another one', () => {
    const other = { annotations: { 'isthmus.dev/snapshot': 'shop/monday', 'isthmus.dev/snapshot-uid': 'u0' } };
    expect(look({ taken: there(other) })).toEqual([
      says(
        'VolumeSnapshot shop-rome/snapshot-u1 at cluster milan is of another VolumeSnapshot of this cluster, or of none',
      ),
    ]);
  });
});

describe('a content that ends', () => {
  const policy = (deletionPolicy: string, more: object = going) => content(more, { deletionPolicy });

  test('is left alone until the snapshot controller has said that it is meant', () => {
    expect(look({ content: policy('Delete', { deletionTimestamp: 'now' }), taken: there() })).toEqual([]);
  });

  test('with policy Delete takes its snapshot along, which is marked first', () => {
    const object = snapshot();
    expect(look({ content: policy('Delete'), taken: { kind: 'there', object } })).toEqual([
      { do: 'order', snapshot: object },
      { do: 'erase', snapshot: object },
    ]);
    const leaving = snapshot({ deletionTimestamp: 'now' });
    expect(look({ content: policy('Delete'), taken: { kind: 'there', object: leaving } })).toEqual([
      { do: 'order', snapshot: leaving },
      { do: 'wait', on: 'VolumeSnapshot shop-rome/snapshot-u1 at cluster milan to go' },
    ]);
    expect(look({ content: policy('Delete'), taken: absent })).toEqual([{ do: 'release' }]);
  });

  test('with policy Retain leaves it', () => {
    expect(look({ content: policy('Retain'), taken: there() })).toEqual([{ do: 'release' }]);
  });

  test('waits for a provider that does not answer, and says what one keeps that is over', () => {
    expect(look({ content: policy('Delete'), taken: { kind: 'unknown', on: 'it' } })).toEqual([
      { do: 'wait', on: 'it' },
    ]);
    for (const kind of ['over', 'forbidden'] as const)
      expect(look({ content: policy('Delete'), taken: { kind, why: 'it keeps' } })).toEqual([
        { do: 'tell', reason: 'DataKeptAtProvider', message: 'it keeps' },
        { do: 'release' },
      ]);
  });
});

test('of all states that can be seen, nothing at a provider is marked or deleted but by a content that is to go, has policy Delete, and is its own', () => {
  const mostly = <T>(truth: T, ...lies: readonly T[]) =>
    fc.oneof({ weight: 3, arbitrary: fc.constant(truth) }, { weight: 1, arbitrary: fc.constantFrom(...lies) });
  const drawn = fc.record({
    deletionTimestamp: mostly<string | undefined>('now', undefined),
    annotations: mostly<object>(beingDeleted, {}),
    finalizers: mostly([bound], []),
    deletionPolicy: mostly('Delete', 'Retain', 'delete', ''),
    source: mostly<object>({ volumeHandle: 'milan/shop-rome/db' }, { snapshotHandle: 'milan/shop-rome/x' }, {}),
    uid: mostly<string | undefined>('u1', 'u2', undefined),
    of: mostly<string | undefined>('u1', 'u0', undefined),
    kind: mostly('there', 'absent', 'over', 'unknown', 'forbidden'),
    leaving: mostly<string | undefined>(undefined, 'now'),
    status: mostly<object | undefined>({ snapshotHandle: 'milan/shop-rome/snapshot-u1', readyToUse: true }, undefined),
  });
  let erased = 0;
  fc.assert(
    fc.property(drawn, (one) => {
      const { deletionTimestamp, annotations, finalizers, deletionPolicy, source, uid, of, kind, leaving } = one;
      const taken =
        kind === 'there'
          ? there({
              deletionTimestamp: leaving,
              annotations: of && { 'isthmus.dev/snapshot': 'shop/monday', 'isthmus.dev/snapshot-uid': of },
            })
          : ({ kind, why: 'w', on: 'o' } as Taken);
      const volumeSnapshotRef = { namespace: 'shop', name: 'monday', uid };
      const observed = content(
        { deletionTimestamp, annotations, finalizers },
        { deletionPolicy, source, volumeSnapshotRef },
        one.status,
      );
      const actions = look({ content: observed, taken });
      const touches = actions.some(({ do: what }) => what === 'order' || what === 'erase');
      if (!touches) return;
      erased += 1;
      const isNamed = 'snapshotHandle' in source;
      expect([deletionTimestamp, deletionPolicy, finalizers, kind]).toEqual(['now', 'Delete', [bound], 'there']);
      expect(annotations === beingDeleted || (isNamed && !uid)).toBe(true);
      expect(of !== undefined && (isNamed || of === uid)).toBe(true);
    }),
    { numRuns: 5_000 },
  );
  expect(erased).toBeGreaterThan(50);
});

test('the place of a snapshot is that of its volume until it says itself where it is', () => {
  const name = (uid: string) => `snapshot-${uid}`;
  expect(placeOf(content(), name)).toEqual(at);
  expect(placeOf(content({}, { source: { snapshotHandle: 'milan/a/b' } }), name)).toEqual({
    provider: 'milan',
    namespace: 'a',
    name: 'b',
  });
  expect(placeOf(content({}, { source: { volumeHandle: 'vol-1' } }), name)).toBeUndefined();
  expect(placeOf(content({}, { volumeSnapshotRef: {} }), name)).toBeUndefined();
});

test('what is not ready is looked at again soon, and rarely in the end', () => {
  expect([0, 8_000, 3_600_000].map(nextLookMs)).toEqual([1_000, 2_000, 30_000]);
});
