/** Whether a claim can begin as a copy of another one, where the scheduler sends it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import { decide } from './decide.ts';
import { originOf, type SourceFacts, withOrigin } from './source.ts';
import type { Target } from './target.ts';

type Claim = PersistentVolumeClaim;
const asked = { kind: 'PersistentVolumeClaim', name: 'db' };
const claim = (spec: object = {}, annotations: object = {}): Claim =>
  ({
    metadata: {
      namespace: 'shop',
      name: 'copy',
      uid: 'u-copy',
      annotations: { 'volume.kubernetes.io/selected-node': 'n1', ...annotations },
    },
    spec: {
      storageClassName: 'liqo',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '2Gi' } },
      dataSource: asked,
      dataSourceRef: asked,
      ...spec,
    },
  }) as unknown as Claim;
const source = (more: object = {}, metadata: object = {}): Claim =>
  ({
    metadata: { namespace: 'shop', name: 'db', uid: 'u-db', ...metadata },
    spec: { storageClassName: 'liqo', volumeName: 'pvc-u-db' },
    status: { phase: 'Bound', capacity: { storage: '2Gi' } },
    ...more,
  }) as unknown as Claim;
const ours = { 'pv.kubernetes.io/provisioned-by': 'liqo.io/storage' };
const volume = (spec: object = {}, annotations: object = ours): PersistentVolume =>
  ({
    metadata: { name: 'pvc-u-db', annotations },
    spec: { claimRef: { uid: 'u-db' }, csi: { driver: 'disk.example.com', volumeHandle: 'h' }, ...spec },
  }) as unknown as PersistentVolume;
const at = (provider: string) =>
  volume({ csi: { driver: 'storage.isthmus.dev', volumeHandle: `${provider}/shop-cons/db` } });
const real = (more: object = {}, metadata: object = {}): Claim =>
  ({
    metadata: { namespace: 'liqo-storage', name: 'u-db', ...metadata },
    spec: { storageClassName: 'disk', volumeName: 'pv' },
    status: { phase: 'Bound', capacity: { storage: '2Gi' } },
    ...more,
  }) as unknown as Claim;
const classes = [
  { metadata: { name: 'liqo' }, provisioner: 'liqo.io/storage' },
  { metadata: { name: 'disk' }, provisioner: 'disk.example.com' },
  { metadata: { name: 'ssd' }, provisioner: 'ssd.example.com' },
] as StorageClass[];
const here = { kind: 'local', storageClass: 'disk' } as const;
const there = { kind: 'remote', provider: 'prov', storageClass: 'fast', accessModes: ['ReadWriteOnce'] } as const;
const behind = (object: Claim, of?: PersistentVolume) => ({ kind: 'there', object, volume: of }) as const;
const near: SourceFacts = { claim: source(), volume: volume(), real: behind(real(), volume()) };
const far: SourceFacts = {
  claim: source(),
  volume: at('prov'),
  real: behind(real({ spec: { storageClassName: 'slow' } }, { namespace: 'shop-cons', name: 'db' })),
};
const look = (facts: SourceFacts, target: typeof here | typeof there = here, of = claim()) =>
  originOf(of, target, facts, classes);

test('a claim without a data source begins empty', () => {
  expect(look({}, here, claim({ dataSource: undefined, dataSourceRef: undefined }))).toEqual({ kind: 'empty' });
});

test('a copy stands beside the real claim of its source, in the class of that', () => {
  expect(look(near)).toEqual({ kind: 'copy', name: 'u-db', storageClass: 'disk' });
  expect(look(far, there)).toEqual({ kind: 'copy', name: 'db', storageClass: 'slow' });
  const asksFast = claim({}, { 'liqo.io/remote-storage-class': 'fast' });
  expect(look(far, there, asksFast)).toEqual({ kind: 'copy', name: 'db', storageClass: 'fast' });
  const made = withOrigin(real(), { kind: 'copy', name: 'u-db', storageClass: 'slow' });
  expect(made.spec).toMatchObject({ storageClassName: 'slow', dataSource: asked && { ...asked, name: 'u-db' } });
});

test.each([
  {
    when: 'in this cluster, for a provider',
    facts: near,
    target: there,
    says: /is in this cluster, and node n1, .* is at cluster prov:/,
  },
  {
    when: 'at a provider, for this cluster',
    facts: far,
    target: here,
    says: /is at cluster prov, and node n1, .* is in this cluster:/,
  },
  {
    when: 'at another provider',
    facts: { ...far, volume: at('other') },
    target: there,
    says: /is at cluster other, and node n1, .* is at cluster prov:/,
  },
])('a source $when has the scheduler choose again, by an event that names both places', ({ facts, target, says }) => {
  const origin = look(facts, target);
  expect(origin).toEqual({ kind: 'elsewhere', message: expect.stringMatching(says) });
  const step = decide({ claim: claim(), target, published: false, backings: [], origin });
  expect(step).toMatchObject({ do: 'reschedule', reason: 'DataSourceElsewhere' });
});

test.each([
  {
    when: 'does not exist',
    facts: {},
    says: /claim shop\/db, of which it is to be a copy \(spec.dataSource\), to be made/,
  },
  { when: 'has no volume', facts: { claim: source({ status: { phase: 'Pending' } }) }, says: /to be Bound/ },
  {
    when: 'has a volume of an earlier claim',
    facts: { ...near, volume: volume({ claimRef: { uid: 'x' } }) },
    says: /to be Bound/,
  },
  {
    when: 'is being moved',
    facts: { ...near, claim: source({}, { annotations: { 'isthmus.dev/volume-move': 'm' } }) },
    says: /to be where it is moved to/,
  },
  {
    when: 'has a real claim without a volume',
    facts: { ...near, real: behind(real({ status: { phase: 'Pending' } })) },
    says: /its real claim liqo-storage\/u-db is Pending/,
  },
  {
    when: 'cannot be asked about',
    facts: { ...near, real: { kind: 'unknown', on: 'cluster prov' } as const },
    says: /cluster prov/,
  },
])('a source that $when is waited for', ({ facts, says }) => {
  expect(look(facts)).toEqual({ kind: 'wait', on: expect.stringMatching(says) });
});

test.each([
  { facts: { ...near, claim: source({}, { deletionTimestamp: 'now' }) }, says: /which is being deleted/ },
  {
    facts: { ...near, real: behind(real({}, { deletionTimestamp: 'now' }), volume()) },
    says: /real claim liqo-storage\/u-db is being deleted/,
  },
  {
    facts: { claim: source({ spec: { storageClassName: 'disk' } }) },
    says: /of StorageClass disk: accepted is a claim of a class with provisioner/,
  },
  { facts: { ...near, volume: volume({}, {}) }, says: /accepted is a claim of a class with provisioner/ },
  { facts: near, of: claim({ volumeMode: 'Block' }), says: /spec.volumeMode is Block: accepted is Filesystem/ },
  {
    facts: { ...near, claim: source({ spec: { volumeMode: 'Block', storageClassName: 'liqo' } }) },
    says: /spec.volumeMode is Filesystem: accepted is Block/,
  },
  {
    facts: near,
    of: claim({ resources: { requests: { storage: '1Gi' } } }),
    says: /spec.resources.requests.storage is 1Gi: accepted is 2Gi or more/,
  },
  {
    facts: { ...near, real: behind(real({ status: { phase: 'Bound', capacity: { storage: '3Gi' } } }), volume()) },
    says: /accepted is 3Gi or more/,
  },
  { facts: { ...near, real: { kind: 'gone', why: 'no claim' } as const }, says: /whose data is not there: no claim/ },
  {
    facts: { ...near, real: behind(real(), volume({ csi: undefined, local: { path: '/' } })) },
    says: /no CSI driver has made/,
  },
  {
    facts: { ...near, real: behind(real({ spec: { storageClassName: 'ssd' } }), volume()) },
    says: /is of driver disk.example.com, and StorageClass ssd is of provisioner ssd.example.com/,
  },
])('what cannot be copied is refused by name: $says', ({ facts, of, says }) => {
  expect(look(facts, here, of)).toEqual({ kind: 'refused', message: expect.stringMatching(says) });
});

describe('of any state of both claims', () => {
  const anyReal = fc.constantFrom<SourceFacts['real']>(
    undefined,
    { kind: 'gone', why: 'gone' },
    { kind: 'unknown', on: 'the connection' },
    behind(real(), volume()),
    behind(real({ status: { phase: 'Pending' } })),
  );
  const facts = fc.record({
    claim: fc.constantFrom(
      undefined,
      source(),
      source({ status: { phase: 'Pending' } }),
      source({}, { deletionTimestamp: 'now' }),
    ),
    volume: fc.constantFrom(undefined, volume(), at('prov'), at('other'), volume({ claimRef: { uid: 'x' } })),
    real: anyReal,
  });
  const target = fc.constantFrom<Target>(here, there);

  test('nothing is made empty that is to be a copy, nor elsewhere than its source', () => {
    fc.assert(
      fc.property(facts, target, (found, to) => {
        if (to.kind !== 'local' && to.kind !== 'remote') return;
        const origin = originOf(claim(), to, found, classes);
        const place = { kind: 'accepted', remoteNamespace: 'shop-cons' } as const;
        const step = decide({ claim: claim(), target: to, published: false, backings: [], place, origin });
        expect(['wait', 'refuse', 'reschedule', 'createLocal', 'createRemote']).toContain(step.do);
        if (step.do !== 'createLocal' && step.do !== 'createRemote') return;
        expect(step.copy?.name).toBe('u-db');
        expect(found.claim?.metadata.deletionTimestamp).toBeUndefined();
        expect(found.volume).toEqual(to.kind === 'local' ? volume() : at('prov'));
        expect(found.real).toMatchObject({ kind: 'there', object: { status: { phase: 'Bound' } } });
      }),
      { numRuns: 2_000 },
    );
  });
});
