/** To which cluster a pod is kept whose claim is to begin as a snapshot. */
import { expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import type { Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { here } from './pod.ts';
import { claimsOfPod } from './pod-claims.ts';

const pod = { spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'copy' } }] } } as unknown as Pod;
const copy = {
  metadata: { namespace: 'shop', name: 'copy' },
  spec: {
    storageClassName: 'liqo',
    dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'monday' },
  },
} as unknown as PersistentVolumeClaim;
const snapshot = (status: object = { boundVolumeSnapshotContentName: 'c' }) => ({
  metadata: { namespace: 'shop', name: 'monday', uid: 's1' },
  spec: { source: { persistentVolumeClaimName: 'db' } },
  status,
});
const content = (driver: string, source: object, uid = 's1') => ({
  metadata: { name: 'c' },
  spec: { driver, source, volumeSnapshotRef: { uid } },
});
const db = { metadata: { namespace: 'shop', name: 'db' }, spec: { volumeName: 'pv' } };
const volume = {
  metadata: { name: 'pv', annotations: { 'pv.kubernetes.io/provisioned-by': 'liqo.io/storage' } },
  spec: { csi: { driver: 'storage.isthmus.dev', volumeHandle: 'genoa/shop-rome/db' } },
} as unknown as PersistentVolume;

function sourcesIn(objects: readonly (readonly [ResourceType<never>, object])[], isServed = true) {
  const api = {
    async get(type: ResourceType, { name }: { readonly name: string }) {
      if (type.plural === volumeSnapshots.plural && !isServed)
        throw new AppError('kube_not_found', 'the API server does not know the kind', { detail: {} });
      return objects.find(
        ([of, object]) =>
          of.plural === type.plural && (object as { metadata: { name: string } }).metadata.name === name,
      )?.[1];
    },
    list: async (type: ResourceType) =>
      type.plural === storageClasses.plural ? [{ metadata: { name: 'liqo' }, provisioner: 'liqo.io/storage' }] : [],
  } as unknown as KubeApi;
  return claimsOfPod(pod, 'shop', api, new AbortController().signal);
}
const always = [
  [persistentVolumeClaims, copy],
  [persistentVolumeClaims, db],
  [persistentVolumes, volume],
] as unknown as [ResourceType<never>, object][];
const withThese = (status: object | undefined, of?: object): [ResourceType<never>, object][] =>
  [
    ...always,
    ...(status ? [[volumeSnapshots, snapshot(status)]] : []),
    ...(of ? [[volumeSnapshotContents, of]] : []),
  ] as never;
const bound = { boundVolumeSnapshotContentName: 'c' };
const ours = 'storage.isthmus.dev';

test.each([
  {
    what: 'at a provider',
    objects: withThese(bound, content(ours, { volumeHandle: 'milan/a/b' })),
    sources: ['milan'],
  },
  {
    what: 'at a provider, by its own handle',
    objects: withThese(bound, content(ours, { snapshotHandle: 'milan/a/b' })),
    sources: ['milan'],
  },
  { what: 'in this cluster', objects: withThese(bound, content('disk', { volumeHandle: 'v' })), sources: [here] },
  { what: 'not bound yet, of a claim at a provider', objects: withThese({}), sources: ['genoa'] },
  {
    what: 'of which another content says that it is its',
    objects: withThese(bound, content(ours, { volumeHandle: 'milan/a/b' }, 'other')),
    sources: ['genoa'],
  },
  { what: 'that is not there', objects: withThese(undefined), sources: [] },
])('a pod whose claim begins as a snapshot $what is kept to $sources', async ({ objects, sources }) => {
  expect(await sourcesIn(objects)).toMatchObject({ movable: true, sources });
});

test('a cluster without the kind keeps the pod nowhere', async () => {
  expect(await sourcesIn(withThese(bound), false)).toMatchObject({ movable: true, sources: [] });
});
