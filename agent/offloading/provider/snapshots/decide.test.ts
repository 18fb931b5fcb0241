/** What becomes of the data of snapshots of guests: it stays, unless the consumer ordered its deletion and the class of the provider says Delete. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#shared/domain/snapshot-kinds.ts';
import { decideSnapshot } from './decide.ts';

const ours = 'isthmus.dev/guest-snapshot';
const held = 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection';
const order = { 'isthmus.dev/data': 'delete' };
const nowMs = Date.parse('2026-01-02T03:04:05Z');
const snapshot = (metadata: object = {}): VolumeSnapshot =>
  ({
    metadata: { namespace: 'shop-rome', name: 's', uid: 's1', finalizers: [ours], ...metadata },
    status: { boundVolumeSnapshotContentName: 'c' },
  }) as unknown as VolumeSnapshot;
const content = (metadata: object = {}, spec: object = {}): VolumeSnapshotContent =>
  ({
    metadata: { name: 'c', uid: 'c1', resourceVersion: '7', ...metadata },
    spec: { deletionPolicy: 'Delete', volumeSnapshotRef: { uid: 's1' }, ...spec },
  }) as unknown as VolumeSnapshotContent;
const guarded = (policy = 'Delete', more: object = {}) =>
  content(
    {
      labels: { 'isthmus.dev/guest': 'rome' },
      annotations: { 'isthmus.dev/kept-policy': policy },
      ...more,
    },
    { deletionPolicy: 'Retain' },
  );
const decide = (of: VolumeSnapshot, found: VolumeSnapshotContent | undefined) =>
  decideSnapshot({ snapshot: of, consumer: 'rome', content: found, nowMs });
const going = (annotations: object = {}, finalizers: readonly string[] = [ours]) =>
  snapshot({ deletionTimestamp: 'now', annotations, finalizers });

test('a content keeps its data from the beginning, and says what it had', () => {
  const home = { 'isthmus.dev/snapshot': 'shop/monday', 'isthmus.dev/snapshot-uid': 'u1' };
  const counts = { 'isthmus.dev/counts-as': '{"size":"1Gi"}' };
  expect(decide(snapshot({ annotations: { ...home, ...counts } }), content())).toEqual({
    do: 'guard',
    patch: {
      metadata: {
        uid: 'c1',
        resourceVersion: '7',
        labels: { 'isthmus.dev/guest': 'rome' },
        annotations: {
          'isthmus.dev/kept-policy': 'Delete',
          'isthmus.dev/kept-home-claim': JSON.stringify({ namespace: 'shop', name: 'monday', uid: 'u1' }),
          ...counts,
        },
      },
      spec: { deletionPolicy: 'Retain' },
    },
  });
  expect(decide(snapshot(), guarded())).toEqual({ do: 'nothing' });
  expect(decide(snapshot(), undefined)).toEqual({ do: 'nothing' });
  expect(decide(snapshot(), content({}, { volumeSnapshotRef: { uid: 'other' } }))).toEqual({ do: 'nothing' });
  // An administrator gave it the policy Delete again: while the snapshot lives it keeps its data.
  const loose = { ...guarded(), spec: { ...guarded().spec, deletionPolicy: 'Delete' } } as VolumeSnapshotContent;
  expect(decide(snapshot(), loose)).toMatchObject({ do: 'guard', patch: { spec: { deletionPolicy: 'Retain' } } });
});

test('without an order the data stays, marked with its consumer', () => {
  expect(decide(going(), content())).toMatchObject({ do: 'guard' });
  expect(decide(going(), guarded())).toEqual({
    do: 'release',
    keeps: true,
    first: {
      metadata: {
        uid: 'c1',
        resourceVersion: '7',
        labels: { 'isthmus.dev/guest': null, 'isthmus.dev/kept-for': 'rome' },
        annotations: { 'isthmus.dev/kept-since': '2026-01-02T03:04:05Z' },
      },
    },
  });
  expect(decide(going(order), guarded('Retain'))).toMatchObject({ do: 'release', keeps: true });
});

test('a content that says already for whom its data stays is written no more: only the finalizer is left to take off', () => {
  const released = guarded('Delete', { labels: { 'isthmus.dev/kept-for': 'rome' } });
  expect(decide(going(), released)).toEqual({ do: 'release', keeps: true });
  expect(decide(going({}, [ours, held]), released)).toEqual({ do: 'nothing' });
  expect(decide(going(order), released)).toMatchObject({ do: 'arm' });
});

test('by order the content is armed, deleted and waited for', () => {
  expect(decide(going(order), guarded())).toMatchObject({
    do: 'arm',
    patch: {
      metadata: { annotations: { 'snapshot.storage.kubernetes.io/volumesnapshot-being-deleted': 'yes' } },
      spec: { deletionPolicy: 'Delete' },
    },
  });
  const armed = { ...guarded(), spec: { ...guarded().spec, deletionPolicy: 'Delete' } } as VolumeSnapshotContent;
  expect(decide(going(order), armed)).toEqual({ do: 'erase' });
  const leaving = { ...armed, metadata: { ...armed.metadata, deletionTimestamp: 'now' } } as VolumeSnapshotContent;
  expect(decide(going(order), leaving)).toMatchObject({ do: 'wait' });
  expect(decide(going(order), undefined)).toEqual({ do: 'release' });
});

test('nothing ends while the snapshot controller holds the snapshot, or after we have let it go', () => {
  expect(decide(going(order, [ours, held]), guarded())).toEqual({ do: 'nothing' });
  expect(decide(going(order, [held]), guarded())).toEqual({ do: 'nothing' });
});

test('of all states that can be seen, data goes only by order, with the policy Delete, when nothing holds the snapshot', () => {
  const mostly = <T>(truth: T, ...lies: readonly T[]) =>
    fc.oneof({ weight: 3, arbitrary: fc.constant(truth) }, { weight: 1, arbitrary: fc.constantFrom(...lies) });
  const drawn = fc.record({
    deletionTimestamp: mostly<string | undefined>('now', undefined),
    annotations: mostly<object>(order, {}, { 'isthmus.dev/data': 'keep' }),
    finalizers: mostly<readonly string[]>([ours], [ours, held], []),
    was: mostly<string | undefined>('Delete', 'Retain', undefined),
    policy: mostly('Retain', 'Delete'),
    uid: mostly('s1', 'other'),
    leaving: mostly<string | undefined>(undefined, 'now'),
  });
  let ended = 0;
  fc.assert(
    fc.property(drawn, ({ deletionTimestamp, annotations, finalizers, was, policy, uid, leaving }) => {
      const found = content(
        {
          labels: { 'isthmus.dev/guest': 'rome' },
          ...(was && { annotations: { 'isthmus.dev/kept-policy': was } }),
          ...(leaving && { deletionTimestamp: leaving }),
        },
        { deletionPolicy: policy, volumeSnapshotRef: { uid } },
      );
      const decision = decide(snapshot({ deletionTimestamp, annotations, finalizers }), found);
      if (decision.do !== 'arm' && decision.do !== 'erase') return;
      ended += 1;
      expect([deletionTimestamp, annotations, finalizers, uid]).toEqual(['now', order, [ours], 's1']);
      expect(was ?? policy).toBe('Delete');
    }),
    { numRuns: 5_000 },
  );
  expect(ended).toBeGreaterThan(50);
});
