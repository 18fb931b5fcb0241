/** Claims whose data must stay when the agent goes: those of guests, which it guards, and the real ones of volumes of this cluster. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';

const isGuarded = ({ metadata }: PersistentVolumeClaim): boolean =>
  metadata.finalizers?.includes(guestVolume.finalizer) ?? false;

/** First the volume keeps its data, then the finalizer goes: interrupted in between, a repetition goes on. False: some changed meanwhile, look again. */
export async function releaseGuestClaims(kube: KubeClient): Promise<boolean> {
  let isDone = true;
  for (const claim of (await kube.list(persistentVolumeClaims, guestVolume.label)).filter(isGuarded)) {
    try {
      await release(kube, claim);
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'kube_conflict' && code !== 'kube_not_found') throw error;
      isDone = false;
    }
  }
  return isDone;
}

async function release(kube: KubeClient, claim: PersistentVolumeClaim): Promise<void> {
  const { finalizers = [], resourceVersion } = claim.metadata;
  const name = claim.spec?.volumeName;
  const volume = name ? await kube.get(persistentVolumes, { name }) : undefined;
  if (volume !== undefined && volume.spec?.persistentVolumeReclaimPolicy !== 'Retain') {
    const { uid } = volume.metadata;
    const patch = { metadata: { uid }, spec: { persistentVolumeReclaimPolicy: 'Retain' } };
    await kube.mergePatch(persistentVolumes, refOf(volume), patch);
  }
  const others = finalizers.filter((one) => one !== guestVolume.finalizer);
  const patch = { metadata: { resourceVersion, finalizers: others } };
  await kube.mergePatch(persistentVolumeClaims, refOf(claim), patch);
}

/** Whether there are claims, asked now, that would go with the namespace of real claims. */
export const hasVolumes = async (kube: KubeClient): Promise<boolean> =>
  (await kube.list(persistentVolumeClaims, undefined, storageNamespace)).length > 0;
