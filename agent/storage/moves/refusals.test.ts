import { expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { VolumeMove } from '#shared/schema/isthmus/volume-move.ts';
import type { NamespaceOffloading } from '#shared/schema/liqo/namespace-offloading.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { type Circumstances, refusalOf } from './refusals.ts';

const move = (target = 'milan'): VolumeMove => ({
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'VolumeMove',
  metadata: { namespace: 'shop', name: 'data', uid: 'move-uid' },
  spec: { target, undoWindowSeconds: 60 },
});
const claim = (spec: object = {}, metadata: object = {}): PersistentVolumeClaim =>
  ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace: 'shop', name: 'data', uid: 'u', ...metadata },
    spec: { storageClassName: 'liqo', volumeName: 'pvc-u', accessModes: ['ReadWriteOnce'], ...spec },
  }) as PersistentVolumeClaim;
const volume = (annotations: object = { 'pv.kubernetes.io/provisioned-by': 'liqo.io/storage' }): PersistentVolume =>
  ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pvc-u', annotations },
    spec: {},
  }) as PersistentVolume;
const storageClass = (name: string, provisioner: string): StorageClass =>
  ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner,
    volumeBindingMode: 'WaitForFirstConsumer',
  }) as StorageClass;
const virtualNode = (clusterID: string, classes: readonly string[]): VirtualNode =>
  ({
    spec: { clusterID, storageClasses: classes.map((storageClassName) => ({ storageClassName })) },
  }) as unknown as VirtualNode;
const offloading = (podOffloadingStrategy = 'LocalAndRemote'): NamespaceOffloading =>
  ({ metadata: { name: 'offloading' }, spec: { podOffloadingStrategy } }) as NamespaceOffloading;
const pod = (owner?: string, phase = 'Running'): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'user',
      ...(owner && { ownerReferences: [{ apiVersion: 'x/v1', kind: owner, name: 'o', uid: 'o', controller: true }] }),
    },
    spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] },
    status: { phase },
  }) as unknown as Pod;

const good: Circumstances = {
  move: move(),
  claims: [claim(), claim({}, { name: 'other' })],
  pods: [pod('StatefulSet')],
  volume: volume(),
  classes: [storageClass('liqo', 'liqo.io/storage'), storageClass('disk', 'disk')],
  offloading: offloading(),
  virtualNodes: [virtualNode('milan', ['fast']), virtualNode('genoa', [])],
  place: () => ({ kind: 'accepted', remoteNamespace: 'shop-rome' }),
  image: 'agent:1',
};

test('a bound claim of a virtual class whose pods come again can go to a provider that offers a class', () =>
  expect(refusalOf(good)).toBeUndefined());

test('so can one of the other provisioner of ours', () => {
  const name = 'storage.isthmus.dev';
  const made = volume({ 'pv.kubernetes.io/provisioned-by': name });
  const classes = [storageClass('liqo', name), storageClass('disk', 'disk')];
  expect(refusalOf({ ...good, volume: made, classes })).toBeUndefined();
});

test.each<{ readonly when: string; readonly but: Partial<Circumstances>; readonly says: RegExp }>([
  {
    when: 'the claim is unknown',
    but: { claims: [claim({}, { name: 'other' })] },
    says: /claim data does not exist in namespace shop: accepted is one of other/,
  },
  { when: 'it has no volume', but: { claims: [claim({ volumeName: undefined })] }, says: /has no volume yet/ },
  { when: 'it is going', but: { claims: [claim({}, { deletionTimestamp: 'now' })] }, says: /is being deleted/ },
  {
    when: 'it is of another class',
    but: { volume: volume({}) },
    says: /StorageClass liqo, whose volumes Isthmus does not make/,
  },
  {
    when: 'it goes with its pod',
    but: { claims: [claim({}, { ownerReferences: [{ kind: 'Pod', name: 'p' }] })] },
    says: /goes with pod p/,
  },
  {
    when: 'a bare pod uses it',
    but: { pods: [pod()] },
    says: /pod user uses it and nothing would make that pod again/,
  },
  { when: 'a Job uses it', but: { pods: [pod('Job')] }, says: /of Job o uses it/ },
  {
    when: 'a pod that has ended uses it',
    but: { pods: [pod('ReplicaSet', 'Succeeded')] },
    says: /has ended and still uses it/,
  },
  { when: 'the namespace is not offloaded', but: { offloading: undefined }, says: /namespace shop is not offloaded/ },
  { when: 'pods run here alone', but: { offloading: offloading('Local') }, says: /strategy Local/ },
  {
    when: 'no pod runs here',
    but: { offloading: offloading('Remote') },
    says: /strategy Remote.*accepted is LocalAndRemote/,
  },
  { when: 'it is there', but: { move: move('local') }, says: /is in this cluster already/ },
  {
    when: 'the target is unknown',
    but: { move: move('turin') },
    says: /turin is no provider of this cluster: accepted is one of genoa, local, milan/,
  },
  { when: 'the target offers no class', but: { move: move('genoa') }, says: /cluster genoa.*offers no storage/ },
  { when: 'the target does not answer', but: { place: () => undefined }, says: /milan does not answer now/ },
  {
    when: 'the target has not taken the namespace',
    but: { place: () => ({ kind: 'none' }) },
    says: /is not offloaded to cluster milan/,
  },
  { when: 'no image is known', but: { image: undefined }, says: /spec\.image/ },
])('is refused when $when', ({ but, says }) => expect(refusalOf({ ...good, ...but })).toMatch(says));
