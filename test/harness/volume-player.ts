/**
 * Plays the provisioner of a real StorageClass on a bare API server: each claim of the class gets a hostPath volume once a node is selected for
 * it (or at once, where pods are played and none is), grows when the claim grows, and goes with it.
 */
import type { Cluster } from '#kube/model/types.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { refOf } from '#shared/domain/kube-object.ts';

const provisioner = 'example.com/played';
const selectedNode = 'volume.kubernetes.io/selected-node';

/** Until `signal` aborts. */
export async function playVolumes(
  { api, caches }: Pick<Cluster, 'api' | 'caches'>,
  className: string,
  signal: AbortSignal,
  // Whether claims wait for their node, as with a class of local disks.
  { waitsForNode = true }: { readonly waitsForNode?: boolean } = {},
): Promise<{ makes: boolean }> {
  /** False: no node gets a volume, as when all disks are full. */
  const player = { makes: true };
  await api.create(storageClasses, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: className },
    provisioner,
    allowVolumeExpansion: true,
    volumeBindingMode: waitsForNode ? 'WaitForFirstConsumer' : 'Immediate',
  });
  const act = (what: Promise<unknown>): void => void what.catch(() => undefined);
  const claims = caches.scoped(persistentVolumeClaims, {}, signal);
  const volumes = caches.scoped(persistentVolumes, {}, signal);
  claims.subscribe(({ after: claim }) => {
    if (claim?.spec?.storageClassName !== className || claim.metadata.deletionTimestamp !== undefined) return;
    const node = claim.metadata.annotations?.[selectedNode];
    if (claim.spec.volumeName === undefined) {
      if (player.makes && (node !== undefined || !waitsForNode))
        act(api.create(persistentVolumes, volumeOf(claim, node)));
      return;
    }
    const volume = volumes.get({ name: claim.spec.volumeName });
    const wanted = claim.spec.resources?.requests?.storage;
    if (volume && wanted !== undefined && claim.status?.phase === 'Bound' && claim.status.capacity?.storage !== wanted)
      act(grow({ api }, claim, volume, wanted));
  });
  volumes.subscribe(({ after: volume }) => {
    if (volume?.status?.phase === 'Released' && volume.spec?.storageClassName === className)
      act(api.delete(persistentVolumes, refOf(volume)));
  });
  return player;
}

async function grow(
  { api }: Pick<Cluster, 'api'>,
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  storage: string,
): Promise<void> {
  await api.mergePatch(persistentVolumes, refOf(volume), { spec: { capacity: { storage } } });
  const options = { subresource: 'status' } as const;
  await api.mergePatch(persistentVolumeClaims, refOf(claim), { status: { capacity: { storage } } }, options);
}

const volumeOf = ({ metadata, spec }: PersistentVolumeClaim, node: string | undefined): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: `played-${metadata.uid}` },
  spec: {
    capacity: { storage: spec?.resources?.requests?.storage ?? '1Gi' },
    accessModes: spec?.accessModes ?? [],
    volumeMode: spec?.volumeMode ?? 'Filesystem',
    storageClassName: spec?.storageClassName ?? '',
    persistentVolumeReclaimPolicy: 'Retain',
    hostPath: { path: `/played/${metadata.uid}` },
    claimRef: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      namespace: metadata.namespace ?? '',
      name: metadata.name,
      uid: metadata.uid ?? '',
    },
    ...(node !== undefined && {
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] },
          ],
        },
      },
    }),
  },
});
