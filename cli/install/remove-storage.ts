/** `install --no-storage`, and `join`, where storage was installed: what only storage needed goes, and what is used stays and is said. */
import type { KubeClient } from '#cli/cluster/open.ts';
import {
  csiDrivers,
  csiStorageCapacities,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  type StorageClass,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { type KubeObject, refOf } from '#shared/domain/kube-object.ts';
import { nameList } from '#shared/domain/name-list.ts';
import { driverLabel, remoteVolumeDriver, storageNamespace, volumeFinalizer } from '#shared/domain/storage-keys.ts';
import { isOurVolume } from '#shared/domain/volumes.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { typeOf } from './apply.ts';
import { orUndefined } from './cluster-state.ts';
import { isInstalled } from './settle-storage.ts';
import { storageRights } from './storage-manifests.ts';

/**
 * After the agent without storage runs. Resolves with what stays, and why; repeating it goes on. Namespace `liqo-storage` always stays, as with the
 * chart: claims in it have the data of volumes.
 */
export async function removeStorage(kube: KubeClient): Promise<string[]> {
  // First, so that an agent that is about to end writes nothing more.
  for (const object of storageRights()) await kube.delete(typeOf(object), refOf(object));
  const classes = (await kube.list<StorageClass>(storageClasses)).filter(isInstalled);
  // An installation that never had storage has none, and need not read all claims of the cluster.
  const claims = classes.length === 0 ? [] : await kube.list<PersistentVolumeClaim>(persistentVolumeClaims);
  const used: string[] = [];
  let isMeasured = false;
  for (const one of classes) {
    const { name } = one.metadata;
    const users = claims.filter(({ spec }) => spec?.storageClassName === name);
    if (users.length === 0) await kube.delete(storageClasses, refOf(one), one.metadata.uid);
    else {
      const names = users.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort();
      used.push(
        `StorageClass ${name} stays, because claims name it: ${nameList(names)}; no volume is made for it any more`,
      );
      isMeasured ||= one.provisioner === remoteVolumeDriver;
    }
  }
  // Without it kube-scheduler would send pods of claims that name the class to nodes.
  if (!isMeasured) await kube.delete(csiDrivers, { name: remoteVolumeDriver });
  const told = `${driverLabel}=${remoteVolumeDriver}`;
  for (const one of await kube.list<KubeObject>(csiStorageCapacities, told, storageNamespace))
    await kube.delete(csiStorageCapacities, refOf(one), one.metadata.uid);
  await releaseVolumes(kube);
  return used;
}

const looks = 10;

/** With the finalizer by which the agent learns of their end they would never go. */
async function releaseVolumes(kube: KubeClient): Promise<void> {
  for (let look = 0; look < looks; look++) {
    const held = (await kube.list<PersistentVolume>(persistentVolumes)).filter(
      (volume) => isOurVolume(volume) && volume.metadata.finalizers?.includes(volumeFinalizer),
    );
    if (held.length === 0) return;
    for (const volume of held) {
      const { resourceVersion, finalizers = [] } = volume.metadata;
      const metadata = { resourceVersion, finalizers: finalizers.filter((name) => name !== volumeFinalizer) };
      const patch = kube.mergePatch(persistentVolumes, refOf(volume), { metadata });
      await orUndefined(orUndefined(patch, 'kube_not_found'), 'kube_conflict');
    }
  }
  throw new AppError(
    'deadline_exceeded',
    `volumes keep the finalizer ${volumeFinalizer}: they changed again and again`,
    {
      detail: { remedy: 'repeat the command' },
    },
  );
}
