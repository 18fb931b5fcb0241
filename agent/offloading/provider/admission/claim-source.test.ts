/** What a guest's claim may begin with, and that no lie of a guest gets it data that is not its own. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import { type GuestSource, namedSource, validateSource } from './claim-source.ts';

type Claim = PersistentVolumeClaim;
const asked = { kind: 'PersistentVolumeClaim', name: 'db' };
const claim = (spec: object = {}): Claim =>
  ({
    metadata: { namespace: 'shop-rome', name: 'copy' },
    spec: { storageClassName: 'fast', resources: { requests: { storage: '2Gi' } }, dataSource: asked, ...spec },
  }) as unknown as Claim;
const source = (metadata: object = {}, more: object = {}): Claim =>
  ({
    metadata: { namespace: 'shop-rome', name: 'db', uid: 'u-db', labels: { 'isthmus.dev/guest': 'rome' }, ...metadata },
    spec: { storageClassName: 'fast', volumeName: 'pv-db' },
    status: { phase: 'Bound' },
    ...more,
  }) as unknown as Claim;
const volume = (spec: object = {}, labels: object = {}): PersistentVolume =>
  ({
    metadata: { name: 'pv-db', labels },
    spec: {
      capacity: { storage: '2Gi' },
      claimRef: { uid: 'u-db' },
      csi: { driver: 'disk.example.com', volumeHandle: 'h' },
      ...spec,
    },
  }) as unknown as PersistentVolume;
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
    claim({ dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' } }),
    own,
    /^spec.dataSource is "VolumeSnapshot s": accepted is a PersistentVolumeClaim of namespace shop-rome, or none/,
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
