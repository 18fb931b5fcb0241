/** What a guest's claim may begin with, and that no lie of a guest gets it data that is not its own. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#shared/domain/snapshot-kinds.ts';
import { guestClaimOf as source, guestVolumeOf as volume } from '#test/harness/guest-sources.ts';
import { type GuestSource, namedSource, validateSource } from './claim-source.ts';

type Claim = PersistentVolumeClaim;
const asked = { kind: 'PersistentVolumeClaim', name: 'db' };
const claim = (spec: object = {}): Claim =>
  ({
    metadata: { namespace: 'shop-rome', name: 'copy' },
    spec: { storageClassName: 'fast', resources: { requests: { storage: '2Gi' } }, dataSource: asked, ...spec },
  }) as unknown as Claim;
const classes = [
  { metadata: { name: 'fast' }, provisioner: 'disk.example.com' },
  { metadata: { name: 'path' }, provisioner: 'rancher.io/local-path' },
] as StorageClass[];
const own: GuestSource = { claim: source(), volume: volume() };

function judge(of: Claim, found: GuestSource = own, consumer = 'rome') {
  const named = namedSource(of);
  return named === undefined ? undefined : validateSource(of, named, found, consumer, classes);
}

test('a claim without a data source needs nothing to be read for it', () => {
  expect(judge(claim({ dataSource: undefined }))).toBeUndefined();
});

test('a copy of a bound claim of the same guest in the same namespace is accepted, as large as that or larger', () => {
  expect(judge(claim())).toEqual({ allowed: true });
  expect(judge(claim({ dataSourceRef: asked }))).toEqual({ allowed: true });
  expect(judge(claim({ resources: { requests: { storage: '3Gi' } } }))).toEqual({ allowed: true });
});

test.each<[Claim, GuestSource, RegExp]>([
  [
    claim({ dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeGroupSnapshot', name: 's' } }),
    own,
    /^spec.dataSource is "VolumeGroupSnapshot s": accepted is a PersistentVolumeClaim or a VolumeSnapshot of namespace shop-rome, or none/,
  ],
  [
    claim({ dataSource: undefined, dataSourceRef: { ...asked, namespace: 'bank' } }),
    own,
    /"PersistentVolumeClaim bank\/db"/,
  ],
  [
    claim({ dataSourceRef: { apiGroup: 'x.example.com', kind: 'Import', name: 'i' } }),
    own,
    /dataSourceRef is "Import i"/,
  ],
  [claim(), {}, /^spec.dataSource.name is "db": rome has no such claim in namespace shop-rome/],
  [claim(), { ...own, claim: source({ labels: { 'isthmus.dev/guest': 'oslo' } }) }, /rome has no such claim/],
  [claim(), { ...own, claim: source({ labels: {} }) }, /rome has no such claim/],
  [claim(), { ...own, claim: source({ deletionTimestamp: 'now' }) }, /is being deleted, and its data may be kept/],
  [claim(), { claim: source({}, { status: { phase: 'Pending' } }) }, /has no volume of its own yet/],
  [claim(), { ...own, volume: volume({ claimRef: { uid: 'of-another' } }) }, /has no volume of its own yet/],
  [claim(), { ...own, volume: volume({}, { 'isthmus.dev/kept-for': 'rome' }) }, /has no volume of its own yet/],
  [claim({ volumeMode: 'Block' }), own, /^spec.volumeMode is "Block": accepted is Filesystem, as of claim db/],
  [
    claim({ resources: { requests: { storage: '1Mi' } } }),
    own,
    /^spec.resources.requests.storage is "1Mi": accepted is 2Gi or more/,
  ],
  [
    claim({ storageClassName: 'path' }),
    own,
    /is of CSI driver disk.example.com, and StorageClass path is of provisioner/,
  ],
  [claim({ storageClassName: 'path' }), { ...own, volume: volume({ csi: undefined }) }, /no CSI driver has made/],
])('any other source is refused by field and value: %#', (of, found, message) => {
  expect(judge(of, found)).toMatchObject({
    allowed: false,
    code: 'sandbox_refused',
    message: expect.stringMatching(message),
  });
});

test('of all that can be written into both fields, and all claims that can be there, only a copy of a living claim of its own is accepted', () => {
  const mostly = <T>(truth: T, ...lies: readonly T[]) =>
    fc.oneof({ weight: 4, arbitrary: fc.constant(truth) }, { weight: 1, arbitrary: fc.constantFrom(...lies) });
  const reference = fc.option(
    fc.record(
      {
        apiGroup: mostly<string | null>('', 'snapshot.storage.k8s.io', 'v1', null),
        kind: mostly('PersistentVolumeClaim', 'persistentvolumeclaim', 'VolumeSnapshot', 'PersistentVolume', ''),
        name: mostly('db', 'copy', 'secret', '../db', ''),
        namespace: mostly('shop-rome', '', 'bank', 'kube-system'),
      },
      { requiredKeys: ['kind', 'name'] },
    ),
    { nil: undefined },
  );
  const sizes = ['0', '-1', '2Gi', 'x'].map((storage) => ({ requests: { storage } }));
  const asking = fc.record({
    dataSource: reference,
    dataSourceRef: reference,
    storageClassName: mostly('fast', 'path', 'unknown'),
    volumeMode: mostly<string | undefined>(undefined, 'Filesystem', 'Block', 'x'),
    resources: mostly<object>({ requests: { storage: '1Ti' } }, {}, ...sizes),
  });
  const there = fc.record({
    guest: mostly<string | undefined>('rome', undefined, 'oslo'),
    going: mostly(false, true),
    phase: mostly('Bound', 'Pending', 'Lost'),
    owner: mostly<string | undefined>('u-db', 'u-other', undefined),
    kept: mostly<string | undefined>(undefined, 'rome', 'oslo'),
    driver: mostly<string | undefined>('disk.example.com', undefined, 'other.example.com'),
  });
  let accepted = 0;
  fc.assert(
    fc.property(asking, fc.option(there, { nil: undefined }), (spec, found) => {
      const of = claim(spec);
      const facts: GuestSource = found
        ? {
            claim: source(
              {
                labels: { ...(found.guest && { 'isthmus.dev/guest': found.guest }) },
                ...(found.going && { deletionTimestamp: 'now' }),
              },
              { status: { phase: found.phase } },
            ),
            volume: volume(
              {
                claimRef: { uid: found.owner },
                csi: found.driver && { driver: found.driver, volumeHandle: 'h' },
              },
              { ...(found.kept && { 'isthmus.dev/kept-for': found.kept }) },
            ),
          }
        : {};
      const verdict = judge(of, facts);
      if (verdict === undefined) {
        expect([spec.dataSource, spec.dataSourceRef]).toEqual([undefined, undefined]);
        return;
      }
      if (!verdict.allowed) return;
      accepted += 1;
      expect(found).toMatchObject({
        guest: 'rome',
        going: false,
        phase: 'Bound',
        owner: 'u-db',
        kept: undefined,
        driver: 'disk.example.com',
      });
      expect(spec.storageClassName).toBe('fast');
      for (const one of [spec.dataSource, spec.dataSourceRef])
        if (one) expect([one.kind, one.apiGroup || '']).toEqual(['PersistentVolumeClaim', '']);
      expect(['', 'shop-rome']).toContain(spec.dataSourceRef?.namespace ?? '');
      expect(spec.resources).toMatchObject({ requests: { storage: expect.stringMatching(/^(2Gi|1Ti)$/) } });
    }),
    { numRuns: 20_000 },
  );
  expect(accepted).toBeGreaterThan(100);
});

const of = (name = 's') => ({ apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name });
const snapshot = (metadata: object = {}, more: object = {}): VolumeSnapshot =>
  ({
    metadata: { namespace: 'shop-rome', name: 's', uid: 's1', labels: { 'isthmus.dev/guest': 'rome' }, ...metadata },
    spec: { source: { persistentVolumeClaimName: 'db' } },
    status: { readyToUse: true, restoreSize: '2Gi' },
    ...more,
  }) as unknown as VolumeSnapshot;
const content = (spec: object = {}, status: object = { readyToUse: true }): VolumeSnapshotContent =>
  ({
    metadata: { name: 'c' },
    spec: {
      driver: 'disk.example.com',
      sourceVolumeMode: 'Filesystem',
      volumeSnapshotRef: { uid: 's1' },
      ...spec,
    },
    status,
  }) as unknown as VolumeSnapshotContent;
/** As the webhook writes it: the volume that it was taken of had 2 GiB. */
const countsAs2Gi = { annotations: { 'isthmus.dev/counts-as': '{"size":"2Gi"}' } };
const taken: GuestSource = { snapshot: snapshot(), content: content() };

test('what a snapshot of its own has is accepted', () => {
  expect(judge(claim({ dataSource: of() }), taken)).toEqual({ allowed: true });
  expect(judge(claim({ dataSource: of(), dataSourceRef: of() }), taken)).toEqual({ allowed: true });
});

test('what a snapshot needs by its driver is enough, also where the volume that it was taken of had more; what that had, where the driver says nothing', () => {
  const asks = (storage: string) => claim({ dataSource: of(), resources: { requests: { storage } } });
  const says = (restoreSize?: string) => ({
    ...taken,
    snapshot: snapshot(countsAs2Gi, { status: { readyToUse: true, restoreSize } }),
  });
  expect(judge(asks('1Gi'), says('1Gi'))).toEqual({ allowed: true });
  expect(judge(asks('2Gi'), says())).toEqual({ allowed: true });
  expect(judge(asks('2Gi'), says('0'))).toEqual({ allowed: true });
});

test.each<[Claim, GuestSource, RegExp]>([
  [
    claim({ dataSource: of() }),
    {},
    /^spec.dataSource.name is "s": rome has no such VolumeSnapshot in namespace shop-rome/,
  ],
  [claim({ dataSource: of() }), { ...taken, snapshot: snapshot({ labels: {} }) }, /rome has no such VolumeSnapshot/],
  [
    claim({ dataSource: of() }),
    { ...taken, snapshot: snapshot({}, { spec: { source: { volumeSnapshotContentName: 'c' } } }) },
    /rome has no such VolumeSnapshot/,
  ],
  [claim({ dataSource: of() }), { ...taken, snapshot: snapshot({ deletionTimestamp: 'now' }) }, /is being deleted/],
  [claim({ dataSource: of() }), { snapshot: snapshot() }, /is not ready to use yet/],
  [claim({ dataSource: of() }), { ...taken, content: content({}, {}) }, /is not ready to use yet/],
  [
    claim({ dataSource: of() }),
    { ...taken, content: content({ volumeSnapshotRef: { uid: 'other' } }) },
    /is not ready to use yet/,
  ],
  [claim({ dataSource: of(), volumeMode: 'Block' }), taken, /^spec.volumeMode is "Block": accepted is Filesystem/],
  [
    claim({ dataSource: of(), resources: { requests: { storage: '1Gi' } } }),
    taken,
    /storage is "1Gi": accepted is 2Gi or more, which VolumeSnapshot s/,
  ],
  ...[undefined, '0', 'much'].map((restoreSize): [Claim, GuestSource, RegExp] => [
    claim({ dataSource: of(), resources: { requests: { storage: '1Gi' } } }),
    { ...taken, snapshot: snapshot(countsAs2Gi, { status: { readyToUse: true, restoreSize } }) },
    /storage is "1Gi": accepted is 2Gi or more, which VolumeSnapshot s/,
  ]),
  [claim({ dataSource: of(), storageClassName: 'path' }), taken, /its data is of CSI driver disk.example.com/],
  [claim({ dataSource: of(), dataSourceRef: asked }), taken, /dataSourceRef is "PersistentVolumeClaim db"/],
])('any other snapshot is refused by field and value: %#', (what, found, message) => {
  expect(judge(what, found)).toMatchObject({
    allowed: false,
    code: 'sandbox_refused',
    message: expect.stringMatching(message),
  });
});

test('of all snapshots that can be there, only a ready one of its own is accepted', () => {
  const mostly = <T>(truth: T, ...lies: readonly T[]) =>
    fc.oneof({ weight: 4, arbitrary: fc.constant(truth) }, { weight: 1, arbitrary: fc.constantFrom(...lies) });
  const there = fc.record({
    guest: mostly<string | undefined>('rome', undefined, 'oslo'),
    going: mostly(false, true),
    source: mostly<object>({ persistentVolumeClaimName: 'db' }, { volumeSnapshotContentName: 'c' }, {}),
    ready: mostly<boolean | undefined>(true, false, undefined),
    bound: mostly<string | undefined>('s1', 'other', undefined),
    driver: mostly('disk.example.com', 'other.example.com'),
    mode: mostly<string | undefined>('Filesystem', 'Block'),
    size: mostly('2Gi', '3Gi', '1Gi'),
  });
  let accepted = 0;
  fc.assert(
    fc.property(there, ({ guest, going, source: from, ready, bound, driver, mode, size }) => {
      const found: GuestSource = {
        snapshot: snapshot(
          {
            labels: { ...(guest && { 'isthmus.dev/guest': guest }) },
            ...(going && { deletionTimestamp: 'now' }),
          },
          { spec: { source: from }, status: { readyToUse: true, restoreSize: size } },
        ),
        content: content({ driver, sourceVolumeMode: mode, volumeSnapshotRef: { uid: bound } }, { readyToUse: ready }),
      };
      if (!judge(claim({ dataSource: of() }), found)?.allowed) return;
      accepted += 1;
      expect([guest, going, from, ready, bound, driver, mode]).toEqual([
        ...['rome', false, { persistentVolumeClaimName: 'db' }, true, 's1'],
        ...['disk.example.com', 'Filesystem'],
      ]);
      expect(size).not.toBe('3Gi');
    }),
    { numRuns: 5_000 },
  );
  expect(accepted).toBeGreaterThan(100);
});
