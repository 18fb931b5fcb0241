/** A snapshot that is lent to a real claim: both objects, and their end. */
import { expect, test } from 'vitest';
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#shared/domain/snapshot-kinds.ts';
import { decideImport, lentContent, lentSnapshot } from './imports.ts';

const claim = (spec: object = {}, uid = 'u1'): PersistentVolumeClaim =>
  ({ metadata: { namespace: 'shop', name: 'copy', uid }, spec }) as unknown as PersistentVolumeClaim;
const original = {
  metadata: { name: 'c', labels: { 'snapshot.storage.kubernetes.io/managed-by': 'node-1' } },
  spec: {
    deletionPolicy: 'Delete',
    driver: 'disk.example.com',
    source: { volumeHandle: 'v' },
    sourceVolumeMode: 'Block',
    volumeSnapshotClassName: 'disk',
    volumeSnapshotRef: { namespace: 'shop', name: 'monday', uid: 's1' },
  },
  status: { snapshotHandle: 'snap-1', readyToUse: true },
} as unknown as VolumeSnapshotContent;
const lent = lentContent(claim(), original);

test('the second content has the handle of the first, and never its policy', () => {
  expect(lent.metadata.labels).toEqual({
    'isthmus.dev/restores-claim': 'u1',
    'snapshot.storage.kubernetes.io/managed-by': 'node-1',
  });
  expect(lent.spec).toEqual({
    deletionPolicy: 'Retain',
    driver: 'disk.example.com',
    source: { snapshotHandle: 'snap-1' },
    sourceVolumeMode: 'Block',
    volumeSnapshotClassName: 'disk',
    volumeSnapshotRef: { namespace: 'liqo-storage', name: 'u1' },
  });
  expect(lentSnapshot(claim())).toMatchObject({
    metadata: { namespace: 'liqo-storage', name: 'u1' },
    spec: { source: { volumeSnapshotContentName: lent.metadata.name } },
  });
});

const snapshot = lentSnapshot(claim());
const going = { ...snapshot, metadata: { ...snapshot.metadata, deletionTimestamp: 'now' } } as VolumeSnapshot;

test.each<[string, Partial<Parameters<typeof decideImport>[0]>, object]>([
  ['stays while its claim has no volume', { claim: claim() }, { do: 'nothing' }],
  ['goes when the claim has its volume', { claim: claim({ volumeName: 'pv' }) }, { do: 'removeSnapshot', snapshot }],
  ['goes when the claim is gone', { claim: undefined }, { do: 'removeSnapshot', snapshot }],
  ['goes when another claim has its name', { claim: claim({}, 'u2') }, { do: 'removeSnapshot', snapshot }],
  ['waits for its VolumeSnapshot', { claim: undefined, snapshot: going }, { do: 'wait' }],
  ['goes after its VolumeSnapshot', { claim: undefined, snapshot: undefined }, { do: 'removeContent' }],
  [
    'leaves a VolumeSnapshot of another content',
    { claim: undefined, snapshot: { ...snapshot, spec: { source: { volumeSnapshotContentName: 'other' } } } },
    { do: 'removeContent' },
  ],
  [
    'goes when its content is gone already',
    { content: undefined, claim: undefined },
    { do: 'removeSnapshot', snapshot },
  ],
  ['is left alone while it goes without its content', { content: undefined, snapshot: going }, { do: 'nothing' }],
  [
    'is no VolumeSnapshot of a user that has no content',
    { content: undefined, snapshot: { ...snapshot, spec: { source: { volumeSnapshotContentName: 'other' } } } },
    { do: 'nothing' },
  ],
  ['is gone when both are', { content: undefined, snapshot: undefined }, { do: 'nothing' }],
  [
    'is given back the policy Retain before it goes',
    { claim: undefined, content: { ...lent, spec: { ...lent.spec, deletionPolicy: 'Delete' } } },
    { do: 'retain' },
  ],
])('what is lent %s', (_, more, step) => {
  expect(decideImport({ content: lent, claim: claim(), snapshot, ...more })).toMatchObject(step);
});
