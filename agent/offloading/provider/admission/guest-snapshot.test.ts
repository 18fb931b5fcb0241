/** Of what a guest may take snapshots, and that no lie of a guest gets it one of data that is not its own. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { VolumeSnapshot } from '#shared/domain/snapshot-kinds.ts';
import { guestClaimOf as claim, guestVolumeOf as volume } from '#test/harness/guest-sources.ts';
import type { GuestSource } from './claim-source.ts';
import { guestSnapshotPatch, validateGuestSnapshot } from './guest-snapshot.ts';

const ours = 'isthmus.dev/guest-snapshot';
const snapshot = (spec: object = {}, metadata: object = {}): VolumeSnapshot =>
  ({
    metadata: { namespace: 'shop-rome', name: 's', ...metadata },
    spec: { source: { persistentVolumeClaimName: 'db' }, ...spec },
  }) as unknown as VolumeSnapshot;
const own: GuestSource = { claim: claim(), volume: volume() };
const judge = (of: VolumeSnapshot, found: GuestSource = own, before?: VolumeSnapshot) =>
  validateGuestSnapshot(of, before, before ? undefined : found, 'rome', { annotations: [] });

test('a snapshot of a bound claim of the guest is accepted, and marked with what it counts as', () => {
  expect(judge(snapshot())).toEqual({ allowed: true });
  const patch = guestSnapshotPatch(
    snapshot({}, { annotations: { 'isthmus.dev/counts-as': '{"size":"0"}' } }),
    'rome',
    own,
  );
  expect(
    Object.fromEntries(patch.map(({ path, ...rest }) => [path, 'value' in rest ? rest.value : undefined])),
  ).toEqual({
    '/metadata/labels': { 'isthmus.dev/guest': 'rome' },
    '/metadata/annotations': { 'isthmus.dev/counts-as': '{"size":"2Gi","storageClassName":"fast"}' },
    '/metadata/finalizers': [ours],
  });
});

test.each<[VolumeSnapshot, GuestSource, RegExp]>([
  [
    snapshot({ source: { volumeSnapshotContentName: 'c' } }),
    {},
    /^spec.source.volumeSnapshotContentName is "c": accepted/,
  ],
  [
    snapshot({ source: { persistentVolumeClaimName: 'db', volumeSnapshotContentName: '' } }),
    own,
    /volumeSnapshotContentName/,
  ],
  [snapshot({ source: {} }), {}, /^spec.source.persistentVolumeClaimName is undefined: rome has no such claim/],
  [snapshot({ volumeSnapshotClassName: 'gold' }), own, /^spec.volumeSnapshotClassName is "gold"/],
  [snapshot(), {}, /rome has no such claim in this namespace/],
  [snapshot(), { ...own, claim: claim({ labels: { 'isthmus.dev/guest': 'oslo' } }) }, /rome has no such claim/],
  [snapshot(), { ...own, claim: claim({ deletionTimestamp: 'now' }) }, /is being deleted/],
  [snapshot(), { claim: claim({}, { status: { phase: 'Pending' } }) }, /has no volume of its own yet/],
  [snapshot(), { ...own, volume: volume({}, { 'isthmus.dev/kept-for': 'rome' }) }, /has no volume of its own yet/],
  [snapshot(), { ...own, volume: volume({ csi: undefined }) }, /no CSI driver has made its volume/],
  [
    snapshot({}, { annotations: { 'snapshot.storage.kubernetes.io/x': 'y' } }),
    own,
    /annotations\[snapshot.storage.kubernetes.io\/x\] is "y": it is an order/,
  ],
  [snapshot({}, { annotations: { 'vendor.example.com/x': 'y' } }), own, /controllers of the provider obey it/],
])('any other one is refused by field and value: %#', (of, found, message) => {
  expect(judge(of, found)).toMatchObject({
    allowed: false,
    code: 'sandbox_refused',
    message: expect.stringMatching(message),
  });
});

test('a guest may order its deletion, and change nothing else that matters', () => {
  const marks = {
    labels: { 'isthmus.dev/guest': 'rome' },
    annotations: { 'isthmus.dev/counts-as': '{"size":"2Gi"}' },
    finalizers: [ours, 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection'],
  };
  const before = snapshot({}, marks);
  const ordered = { ...marks, annotations: { ...marks.annotations, 'isthmus.dev/data': 'delete' } };
  expect(judge(snapshot({}, ordered), own, before)).toEqual({ allowed: true });
  for (const [spec, metadata] of [
    [{}, { ...marks, labels: {} }],
    [{}, { ...marks, labels: { 'isthmus.dev/guest': 'oslo' } }],
    [{}, { ...marks, annotations: {} }],
    [{}, { ...marks, annotations: { 'isthmus.dev/counts-as': '{"size":"0"}' } }],
    [{}, { ...marks, finalizers: [ours] }],
    [{}, { ...marks, finalizers: undefined }],
    [{ source: { persistentVolumeClaimName: 'other' } }, marks],
    [{ volumeSnapshotClassName: 'gold' }, marks],
  ])
    expect(judge(snapshot(spec, metadata), own, before)).toMatchObject({ allowed: false, code: 'forbidden' });
});

test('of all that can be written and all that can be there, only a snapshot of a living claim of its own is accepted', () => {
  const mostly = <T>(truth: T, ...lies: readonly T[]) =>
    fc.oneof({ weight: 4, arbitrary: fc.constant(truth) }, { weight: 1, arbitrary: fc.constantFrom(...lies) });
  const spec = fc.record(
    {
      source: fc.record(
        {
          persistentVolumeClaimName: mostly('db', 'other', ''),
          volumeSnapshotContentName: fc.constantFrom('c', '', 'snapcontent-u1'),
        },
        { requiredKeys: [] },
      ),
      volumeSnapshotClassName: mostly<string | undefined>(undefined, 'gold', ''),
    },
    { requiredKeys: ['source'] },
  );
  const there = fc.record({
    guest: mostly<string | undefined>('rome', undefined, 'oslo'),
    going: mostly(false, true),
    phase: mostly('Bound', 'Pending', 'Lost'),
    owner: mostly<string | undefined>('u-db', 'u-other', undefined),
    kept: mostly<string | undefined>(undefined, 'rome', 'oslo'),
    driver: mostly<string | undefined>('disk.example.com', undefined),
  });
  let accepted = 0;
  fc.assert(
    fc.property(spec, fc.option(there, { nil: undefined }), (asked, found) => {
      const source: GuestSource =
        found && asked.source.persistentVolumeClaimName === 'db'
          ? {
              claim: claim(
                {
                  labels: { ...(found.guest && { 'isthmus.dev/guest': found.guest }) },
                  ...(found.going && { deletionTimestamp: 'now' }),
                },
                { status: { phase: found.phase } },
              ),
              volume: volume(
                { claimRef: { uid: found.owner }, csi: found.driver && { driver: found.driver, volumeHandle: 'h' } },
                { ...(found.kept && { 'isthmus.dev/kept-for': found.kept }) },
              ),
            }
          : {};
      if (!judge(snapshot(asked), source).allowed) return;
      accepted += 1;
      expect(asked.source).toEqual({ persistentVolumeClaimName: 'db' });
      expect(asked.volumeSnapshotClassName || undefined).toBeUndefined();
      expect(found).toEqual({
        guest: 'rome',
        going: false,
        phase: 'Bound',
        owner: 'u-db',
        kept: undefined,
        driver: 'disk.example.com',
      });
    }),
    { numRuns: 20_000 },
  );
  expect(accepted).toBeGreaterThan(100);
});
