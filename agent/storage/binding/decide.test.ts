/** The way from a claim to its volume, step by step, and what may never happen on it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import { matchesTerms } from '#shared/domain/node-selector.ts';
import { type Backing, decide, type Observed } from './decide.ts';
import { localClaim, localVolume, remoteClaim, remoteNames, remoteVolume } from './objects.ts';
import type { Target } from './target.ts';

const selected = 'volume.kubernetes.io/selected-node';
const claim = (more: object = {}, spec: object = {}): PersistentVolumeClaim =>
  ({
    metadata: { namespace: 'shop', name: 'data', uid: 'u-1', annotations: { [selected]: 'n1' }, ...more },
    spec: {
      storageClassName: 'liqo',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      ...spec,
    },
  }) as unknown as PersistentVolumeClaim;
const localTarget = { kind: 'local', storageClass: 'disk' } as const;
const remoteTarget = {
  kind: 'remote',
  provider: 'prov',
  storageClass: 'fast',
  accessModes: ['ReadWriteOnce'],
} as const;
const backing = (
  {
    provider,
    node = 'n1',
    marked = true,
    going = false,
  }: { provider?: string; node?: string | undefined; marked?: boolean; going?: boolean },
  more: object = {},
): Backing => ({
  provider,
  object: {
    metadata: {
      namespace: 'x',
      name: 'real',
      uid: 'r-1',
      annotations: { ...(node && { [selected]: node }), ...(marked && { 'isthmus.dev/unpublished': 'true' }) },
      ...(going && { deletionTimestamp: 'now' }),
    },
    ...more,
  } as unknown as PersistentVolumeClaim,
});
const observed = (more: Partial<Observed> = {}): Observed => ({
  claim: claim(),
  target: localTarget,
  published: false,
  backings: [],
  ...more,
});
const source = { metadata: { name: 'pv' }, spec: {} } as PersistentVolume;
const bound = { status: { phase: 'Bound' }, spec: { volumeName: 'pv' } };

describe('a claim for this cluster', () => {
  test.each([
    { when: 'nothing is there', with: {}, step: 'createLocal' },
    { when: 'its real claim waits', with: { backings: [backing({})] }, step: 'wait' },
    { when: 'its real claim is bound', with: { backings: [backing({}, bound)], source }, step: 'publishLocal' },
    { when: 'its volume is there', with: { published: true, backings: [backing({}, bound)] }, step: 'unmark' },
    {
      when: 'its volume is there and noted',
      with: { published: true, backings: [backing({ marked: false }, bound)] },
      step: 'nothing',
    },
    {
      when: 'the real class gives up the node',
      with: {
        backings: [
          { object: { metadata: { name: 'r', annotations: { 'isthmus.dev/unpublished': 'true' } } } as never },
        ],
      },
      step: 'reschedule',
    },
    { when: 'the scheduler chose another node', with: { backings: [backing({ node: 'n2' })] }, step: 'discard' },
    {
      when: 'it was bound for another node',
      with: { backings: [backing({ node: 'n2' }, bound)], source },
      step: 'publishLocal',
    },
    {
      when: 'the scheduler chose a provider before',
      with: { backings: [backing({ provider: 'prov' })] },
      step: 'discard',
    },
    { when: 'an earlier real claim is going', with: { backings: [backing({ going: true })] }, step: 'wait' },
    {
      when: 'it goes before it has a volume',
      with: { claim: claim({ deletionTimestamp: 'now' }), backings: [backing({})] },
      step: 'discard',
    },
  ])('when $when: $step', ({ with: more, step }) => {
    expect(decide(observed(more))).toMatchObject({ do: step });
  });
});

describe('a claim for a provider', () => {
  const remote = (more: Partial<Observed>) => decide(observed({ target: remoteTarget, ...more }));
  test.each([
    {
      when: 'its namespace is there',
      with: { place: { kind: 'accepted', remoteNamespace: 'shop-cons' } as const },
      step: { do: 'createRemote', namespace: 'shop-cons' },
    },
    {
      when: 'its namespace is being made',
      with: { place: { kind: 'held', why: 'soon' } as const },
      step: { do: 'wait', on: 'soon' },
    },
    { when: 'its namespace is not offloaded', with: { place: { kind: 'none' } as const }, step: { do: 'reschedule' } },
    { when: 'the provider cannot be asked', with: {}, step: { do: 'wait', on: 'the connection to cluster prov' } },
    {
      when: 'its real claim is there',
      with: { backings: [backing({ provider: 'prov' })] },
      step: { do: 'publishRemote' },
    },
    {
      when: 'the scheduler chose another provider before',
      with: { backings: [backing({ provider: 'other' })] },
      step: { do: 'discard' },
    },
  ])('when $when', ({ with: more, step }) => expect(remote(more)).toMatchObject(step));
});

const anyTarget: fc.Arbitrary<Target> = fc.constantFrom<Target>(
  { kind: 'none' },
  { kind: 'refused', message: 'no' },
  { kind: 'elsewhere', message: 'no' },
  localTarget,
  remoteTarget,
);
const anyBacking = fc
  .record({
    provider: fc.constantFrom(undefined, 'prov', 'other'),
    node: fc.constantFrom(undefined, 'n1', 'n2'),
    marked: fc.boolean(),
    going: fc.boolean(),
    bound: fc.boolean(),
  })
  .map(({ bound: isBound, provider, ...rest }) =>
    backing({ ...rest, ...(provider && { provider }) }, isBound ? bound : {}),
  );
const anything = fc.record({
  target: anyTarget,
  published: fc.boolean(),
  backings: fc.array(anyBacking, { maxLength: 3 }),
  going: fc.boolean(),
  finished: fc.boolean(),
  hasSource: fc.boolean(),
});

test('a real claim goes only while nothing ever stood for it, and none is made once the claim has its volume', () => {
  fc.assert(
    fc.property(anything, ({ going, finished, hasSource, ...rest }) => {
      const of = claim(going ? { deletionTimestamp: 'now' } : {}, finished ? { volumeName: 'pvc-u-1' } : {});
      const step = decide({
        ...rest,
        claim: of,
        ...(hasSource && { source }),
        place: { kind: 'accepted', remoteNamespace: 'r' },
      });
      if (step.do === 'discard')
        expect(step.backing.object.metadata.annotations).toHaveProperty(['isthmus.dev/unpublished'], 'true');
      if (rest.published || finished) expect(['nothing', 'unmark']).toContain(step.do);
      if (going) expect(['nothing', 'unmark', 'discard']).toContain(step.do);
      if (step.do === 'createLocal' || step.do === 'createRemote')
        expect(rest.backings.filter(({ object }) => object.metadata.annotations?.['isthmus.dev/unpublished'])).toEqual(
          [],
        );
    }),
    { numRuns: 5_000 },
  );
});

describe('the objects', () => {
  const virtual = {
    metadata: { name: 'liqo' },
    provisioner: 'liqo.io/storage',
    reclaimPolicy: 'Retain',
  } as StorageClass;

  test('a volume of this cluster is mounted where the real one is, and never on a virtual node', () => {
    const requirement = fc.record({
      key: fc.constantFrom('zone', 'host'),
      operator: fc.constant('In'),
      values: fc.constantFrom('a', 'b').map((one) => [one]),
    });
    const term = fc.record({
      matchExpressions: fc.array(requirement, { minLength: 1, maxLength: 2 }),
      matchFields: fc
        .boolean()
        .map((pinned) => (pinned ? [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] : [])),
    });
    const node = fc.record({
      name: fc.constantFrom('n1', 'n2'),
      labels: fc.dictionary(fc.constantFrom('zone', 'host', 'liqo.io/type'), fc.constantFrom('a', 'b')),
    });
    fc.assert(
      fc.property(fc.option(fc.array(term, { minLength: 1, maxLength: 3 }), { nil: undefined }), node, (terms, at) => {
        const real = {
          metadata: { name: 'pv' },
          spec: { ...(terms && { nodeAffinity: { required: { nodeSelectorTerms: terms } } }) },
        } as PersistentVolume;
        const made = localVolume(claim(), virtual, real).spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
        const isVirtual = 'liqo.io/type' in at.labels;
        expect(matchesTerms(at, made)).toBe(!isVirtual && (terms === undefined || matchesTerms(at, terms)));
      }),
    );
  });

  test('a volume has everything by which the real one is mounted, at least the size asked for, and the policy of the virtual class', () => {
    const real = {
      metadata: { name: 'pv' },
      spec: {
        csi: { driver: 'd', volumeHandle: 'h' },
        mountOptions: ['noatime'],
        capacity: { storage: '4Gi' },
        storageClassName: 'disk',
        persistentVolumeReclaimPolicy: 'Delete',
        claimRef: { name: 'u-1' },
      },
    } as unknown as PersistentVolume;
    const other = localVolume(claim(), { ...virtual, provisioner: 'storage.isthmus.dev' }, real);
    expect(other.metadata.annotations).toEqual({ 'pv.kubernetes.io/provisioned-by': 'storage.isthmus.dev' });
    expect(localVolume(claim(), virtual, real)).toMatchObject({
      metadata: {
        name: 'pvc-u-1',
        annotations: { 'pv.kubernetes.io/provisioned-by': 'liqo.io/storage' },
        finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        csi: { driver: 'd', volumeHandle: 'h' },
        mountOptions: ['noatime'],
        capacity: { storage: '4Gi' },
        storageClassName: 'liqo',
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef: { namespace: 'shop', name: 'data', uid: 'u-1' },
      },
    });
    expect(remoteVolume(claim(), virtual, { provider: 'prov', namespace: 'r', name: 'data' }).spec).toMatchObject({
      capacity: { storage: '1Gi' },
      csi: { driver: 'storage.isthmus.dev', volumeHandle: 'prov/r/data' },
    });
  });

  test('a claim at the provider says whose it is, and nothing that only this cluster understands', () => {
    const of = claim(
      {
        labels: { app: 'db', 'liqo.io/managed': 'true' },
        annotations: {
          team: 'x',
          [selected]: 'n1',
          'volume.kubernetes.io/storage-provisioner': 'liqo.io/storage',
          'pv.kubernetes.io/bind-completed': 'yes',
          'isthmus.dev/external-claim': 'false',
        },
      },
      { volumeMode: 'Block', volumeName: 'v' },
    );
    const made = remoteClaim(of, remoteTarget, 'Delete', { consumer: 'cons', namespace: 'r', name: 'data', mark: 'm' });
    expect(made.metadata.labels).toEqual({
      app: 'db',
      'offloading.liqo.io/origin': 'cons',
      'offloading.liqo.io/destination': 'prov',
    });
    expect(Object.keys(made.metadata.annotations ?? {}).sort()).toEqual([
      'isthmus.dev/claim',
      'isthmus.dev/claim-uid',
      'isthmus.dev/reclaim-policy',
      'isthmus.dev/unpublished',
      'team',
    ]);
    expect(made.spec).toEqual({
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'fast',
      volumeMode: 'Block',
      resources: { requests: { storage: '1Gi' } },
    });
  });

  test('a real claim in this cluster is named after the claim and waits for the same node', () => {
    const { metadata, spec } = localClaim(claim(), localTarget, 'Delete', 'm');
    expect(metadata).toMatchObject({
      namespace: 'liqo-storage',
      name: 'u-1',
      annotations: { [selected]: 'n1', 'isthmus.dev/claim': 'shop/data' },
    });
    expect(spec).toMatchObject({ storageClassName: 'disk', volumeMode: 'Filesystem' });
  });

  test('names at the provider fit, and differ', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 253 }), fc.uuid(), (length, uid) => {
        const [plain, unique] = remoteNames(claim({ name: 'a'.repeat(length), uid }));
        expect([plain.length, unique.length <= 253, plain === unique]).toEqual([length, true, false]);
      }),
    );
  });
});
