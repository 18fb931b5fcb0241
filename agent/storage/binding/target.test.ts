/** Where the volume of a claim is to be. */
import { describe, expect, test } from 'vitest';
import type { PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import { type SelectedNode, targetOf } from './target.ts';

const selected = 'volume.kubernetes.io/selected-node';
const ours = { 'volume.kubernetes.io/storage-provisioner': 'liqo.io/storage' };
const virtual = (more: object = {}): StorageClass =>
  ({
    metadata: { name: 'liqo' },
    provisioner: 'liqo.io/storage',
    volumeBindingMode: 'WaitForFirstConsumer',
    ...more,
  }) as StorageClass;
const real = (name: string, isDefault = false): StorageClass =>
  ({
    metadata: {
      name,
      annotations: isDefault ? { 'storageclass.kubernetes.io/is-default-class': 'true' } : {},
    },
    provisioner: 'disk.example.com',
  }) as StorageClass;
const claim = (annotations: Record<string, string> = {}, spec: object = {}): PersistentVolumeClaim =>
  ({
    metadata: { namespace: 'shop', name: 'data', annotations: { ...ours, [selected]: 'n1', ...annotations } },
    spec: { storageClassName: 'liqo', accessModes: ['ReadWriteOnce'], ...spec },
  }) as unknown as PersistentVolumeClaim;
const here: SelectedNode = { kind: 'real' };
const at = (...offered: { storageClassName: string; default?: boolean }[]): SelectedNode => ({
  kind: 'virtual',
  provider: 'prov',
  offered,
});
const look = (of: PersistentVolumeClaim, node: SelectedNode, classes: StorageClass[] = [virtual(), real('disk')]) =>
  targetOf(of, { classes, nodeOf: () => node });

describe('nothing is done', () => {
  test.each([
    { why: 'of another class', of: claim({}, { storageClassName: 'disk' }) },
    { why: 'of no class', of: claim({}, { storageClassName: undefined }) },
    { why: 'for which Kubernetes has not called us yet', of: { ...claim(), metadata: { name: 'data' } } },
    { why: 'without a selected node', of: { ...claim(), metadata: { name: 'data', annotations: ours } } },
  ])('about a claim $why', ({ of }) => {
    expect(look(of as PersistentVolumeClaim, here)).toEqual({ kind: 'none' });
  });
});

describe('a volume in this cluster', () => {
  test('is for claims of either provisioner of ours, once Kubernetes has called that one', () => {
    const other = 'storage.isthmus.dev';
    const classes = [virtual({ provisioner: other }), real('disk')];
    const called = claim({ 'volume.kubernetes.io/storage-provisioner': other });
    expect(look(called, here, classes)).toEqual({ kind: 'local', storageClass: 'disk' });
  });

  test.each([
    { classes: [virtual(), real('disk')], is: 'disk' },
    { classes: [virtual(), real('disk'), real('ssd', true)], is: 'ssd' },
    { classes: [virtual({ parameters: { localStorageClass: 'disk' } }), real('disk'), real('ssd', true)], is: 'disk' },
    // The class itself may be the default of the cluster.
    {
      classes: [
        virtual({ metadata: { name: 'liqo', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } }),
        real('disk'),
      ],
      is: 'disk',
    },
  ])('is of class $is', ({ classes, is }) => {
    expect(look(claim(), here, classes)).toEqual({ kind: 'local', storageClass: is });
  });

  test.each([
    { classes: [virtual()], says: /there is none; name one in parameters.localStorageClass of StorageClass liqo/ },
    { classes: [virtual(), real('a'), real('b')], says: /a, b are there and none is the default/ },
    {
      classes: [virtual({ parameters: { localStorageClass: 'gone' } }), real('a')],
      says: /localStorageClass of StorageClass liqo is gone.*accepted is one of a/,
    },
  ])('is refused where no class can be meant', ({ classes, says }) => {
    expect(look(claim(), here, classes)).toEqual({ kind: 'refused', message: expect.stringMatching(says) });
  });
});

describe('a volume at a provider', () => {
  const fast = { storageClassName: 'fast' };
  const slow = { storageClassName: 'slow', default: true };
  const remote = (storageClass: string, accessModes = ['ReadWriteOnce']) => ({
    kind: 'remote',
    provider: 'prov',
    storageClass,
    accessModes,
  });
  test.each([
    { offered: [fast], annotations: {}, is: remote('fast') },
    { offered: [fast, slow], annotations: {}, is: remote('slow') },
    { offered: [fast, slow], annotations: { 'liqo.io/remote-storage-class': 'fast' }, is: remote('fast') },
    {
      offered: [fast],
      annotations: { 'liqo.io/remote-access-modes': 'ReadWriteMany, ReadOnlyMany' },
      is: remote('fast', ['ReadWriteMany', 'ReadOnlyMany']),
    },
  ])('B107 with $annotations out of $offered', ({ offered, annotations, is }) => {
    expect(look(claim(annotations), at(...offered))).toEqual(is);
  });

  test.each([
    {
      annotations: { 'liqo.io/remote-storage-class': 'gold' },
      says: /gold.*does not offer: accepted is one of fast, b/,
    },
    { annotations: { 'liqo.io/remote-access-modes': 'RWO' }, says: /"RWO": accepted is a comma list of ReadWriteOnce/ },
    { annotations: {}, says: /offers fast, b and none as the default/ },
  ])('is refused by name: $annotations', ({ annotations, says }) => {
    const target = look(claim(annotations), at(fast, { storageClassName: 'b' }));
    expect(target).toEqual({ kind: 'refused', message: expect.stringMatching(says) });
  });

  test('that is to be a copy needs no default: it is of the class of its source', () => {
    const copy = claim({}, { dataSource: { kind: 'PersistentVolumeClaim', name: 'db' } });
    expect(look(copy, at(fast, { storageClassName: 'b' }))).toMatchObject({ kind: 'remote', provider: 'prov' });
  });

  test('is looked for elsewhere when its cluster offers none, or the node is gone', () => {
    expect(look(claim(), at())).toMatchObject({ kind: 'elsewhere', message: /cluster prov.*offers no storage/ });
    expect(look(claim(), { kind: 'virtual', provider: 'prov' })).toMatchObject({ kind: 'elsewhere' });
    expect(look(claim(), { kind: 'missing' })).toMatchObject({ kind: 'elsewhere', message: /n1.*is gone/ });
  });
});

test.each([
  {
    classes: [virtual({ volumeBindingMode: 'Immediate' })],
    of: claim(),
    says: /volumeBindingMode of StorageClass liqo is Immediate/,
  },
  {
    classes: [virtual({ parameters: { type: 'ssd', fsType: 'xfs' } })],
    of: claim(),
    says: /has fsType, type: accepted is localStorageClass/,
  },
  {
    classes: [virtual({ mountOptions: ['noatime'] })],
    of: claim(),
    says: /mountOptions of StorageClass liqo is noatime/,
  },
  { classes: [virtual()], of: claim({}, { selector: { matchLabels: {} } }), says: /spec.selector is set/ },
  {
    classes: [virtual()],
    of: claim({}, { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeGroupSnapshot', name: 'monday' } }),
    says: /spec.dataSource is VolumeGroupSnapshot monday: accepted is another PersistentVolumeClaim or a VolumeSnapshot of namespace shop/,
  },
  {
    classes: [virtual()],
    of: claim({}, { dataSource: { kind: 'PersistentVolumeClaim', name: 'data' } }),
    says: /spec.dataSource is the claim itself: /,
  },
  {
    classes: [virtual()],
    of: claim({}, { dataSourceRef: { apiGroup: 'a.example.com', kind: 'Import', name: 'dump', namespace: 'other' } }),
    says: /spec.dataSourceRef is Import other\/dump: accepted is another PersistentVolumeClaim/,
  },
  {
    classes: [virtual()],
    of: claim({}, { volumeAttributesClassName: 'gold' }),
    says: /spec.volumeAttributesClassName is gold: accepted is a claim without it/,
  },
])('what neither side could keep to is refused by name: $says', ({ classes, of, says }) => {
  for (const node of [here, at({ storageClassName: 'fast' })])
    expect(look(of, node, classes)).toEqual({ kind: 'refused', message: expect.stringMatching(says) });
});
