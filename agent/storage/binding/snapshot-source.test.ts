/** Where a claim may be made that is to begin as a VolumeSnapshot. */
import { expect, test } from 'vitest';
import type { PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#shared/domain/snapshot-kinds.ts';
import { type SnapshotFacts, snapshotOriginOf } from './snapshot-source.ts';
import type { Found } from './source.ts';

const asked = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'monday' };
const claim = (spec: object = {}, annotations: object = {}): PersistentVolumeClaim =>
  ({
    metadata: {
      namespace: 'shop',
      name: 'copy',
      annotations: { 'volume.kubernetes.io/selected-node': 'n1', ...annotations },
    },
    spec: { storageClassName: 'liqo', dataSource: asked, resources: { requests: { storage: '2Gi' } }, ...spec },
  }) as unknown as PersistentVolumeClaim;
const snapshot = (metadata: object = {}, status: object = {}): VolumeSnapshot =>
  ({
    metadata: { namespace: 'shop', name: 'monday', uid: 's1', ...metadata },
    status: { readyToUse: true, restoreSize: '1Gi', ...status },
  }) as unknown as VolumeSnapshot;
const content = (spec: object = {}, status: object = {}): VolumeSnapshotContent =>
  ({
    metadata: { name: 'snapcontent-s1' },
    spec: {
      driver: 'storage.isthmus.dev',
      sourceVolumeMode: 'Filesystem',
      source: { volumeHandle: 'milan/shop-rome/db' },
      volumeSnapshotRef: { uid: 's1' },
      ...spec,
    },
    status: { readyToUse: true, snapshotHandle: 'milan/shop-rome/snapshot-s1', ...status },
  }) as unknown as VolumeSnapshotContent;
const local = content({ driver: 'disk.example.com', source: { volumeHandle: 'v' } }, { snapshotHandle: 'snap-1' });
const classes = [
  { metadata: { name: 'disk' }, provisioner: 'disk.example.com' },
  { metadata: { name: 'path' }, provisioner: 'rancher.io/local-path' },
] as StorageClass[];
const milan: Found = { kind: 'remote', provider: 'milan', storageClass: 'fast', accessModes: [] };
const here: Found = { kind: 'local', storageClass: 'disk' };
const beside = { metadata: { namespace: 'n', name: 'real' }, status: { readyToUse: true } } as VolumeSnapshot;
const there = { kind: 'there', object: beside, storageClass: 'slow' } as const;

const origin = (of: PersistentVolumeClaim, target: Found, facts: Partial<SnapshotFacts> = {}) =>
  snapshotOriginOf(
    of,
    target,
    { isServed: true, snapshot: snapshot(), content: content(), real: there, ...facts },
    classes,
  );

test('at the provider that has it, it is of the class of what it was taken of, unless the claim names another one', () => {
  const copy = { kind: 'copy', of: 'snapshot', name: 'real' };
  expect(origin(claim(), milan)).toEqual({ ...copy, storageClass: 'slow' });
  expect(origin(claim(), milan, { real: { ...there, storageClass: undefined } })).toEqual({
    ...copy,
    storageClass: 'fast',
  });
  const named = claim({}, { 'liqo.io/remote-storage-class': 'fast' });
  expect(origin(named, milan)).toEqual({ ...copy, storageClass: 'fast' });
});

test('in this cluster it is lent first, and has to be of the driver of the class', () => {
  expect(origin(claim(), here, { content: local, real: { kind: 'absent' } })).toEqual({
    kind: 'lend',
    original: local,
  });
  expect(origin(claim(), here, { content: local })).toMatchObject({ kind: 'copy', name: 'real', storageClass: 'disk' });
  const path: Found = { kind: 'local', storageClass: 'path' };
  expect(origin(claim(), path, { content: local, real: { kind: 'absent' } })).toMatchObject({
    kind: 'refused',
    message: expect.stringContaining('of driver disk.example.com, and StorageClass path is of provisioner rancher.io'),
  });
});

test('elsewhere it is not made', () => {
  expect(origin(claim(), here)).toMatchObject({
    kind: 'elsewhere',
    message: expect.stringMatching(
      /VolumeSnapshot monday, which is at cluster milan, and node n1, .* is in this cluster/,
    ),
  });
  expect(origin(claim(), milan, { content: local })).toMatchObject({ kind: 'elsewhere' });
  expect(origin(claim(), { ...milan, provider: 'oslo' })).toMatchObject({ kind: 'elsewhere' });
});

test.each<[Partial<SnapshotFacts>, RegExp]>([
  [{ isServed: false }, /the kinds of VolumeSnapshots to be installed/],
  [{ snapshot: undefined, content: undefined }, /VolumeSnapshot shop\/monday, .* to be made/],
  [{ content: undefined }, /to be ready to use/],
  [{ content: content({ volumeSnapshotRef: { uid: 'other' } }) }, /to be ready to use/],
  [{ content: content({}, { readyToUse: false, error: { message: 'no room' } }) }, /to be ready to use \(no room\)/],
  [{ real: { kind: 'unknown', on: 'the connection to cluster milan' } }, /the connection/],
  [{ real: { ...there, object: { ...beside, status: { readyToUse: false } } } }, /VolumeSnapshot n\/real to be ready/],
])('it waits for what is missing: %#', (facts, on) => {
  expect(origin(claim(), milan, facts)).toEqual({ kind: 'wait', on: expect.stringMatching(on) });
});

test.each<[PersistentVolumeClaim, Partial<SnapshotFacts>, RegExp]>([
  [claim(), { snapshot: snapshot({ deletionTimestamp: 'now' }) }, /is being deleted/],
  [claim({ volumeMode: 'Block' }), {}, /^spec.volumeMode is Block: accepted is Filesystem/],
  [claim({ resources: { requests: { storage: '1Mi' } } }), {}, /storage is 1Mi: accepted is 1Gi or more/],
  [claim(), { real: { kind: 'gone', why: 'nothing there' } }, /whose data is not there: nothing there/],
])('it is refused by field and value: %#', (of, facts, message) => {
  expect(origin(of, milan, facts)).toEqual({ kind: 'refused', message: expect.stringMatching(message) });
});
