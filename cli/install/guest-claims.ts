/** Claims of guests when the agent that guards them is gone: they may go, and their data stays. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { refOf } from '#shared/domain/kube-object.ts';

/** First the volume keeps its data, then the finalizer goes: interrupted in between, a repetition goes on. */
export async function releaseGuestClaims(kube: KubeClient): Promise<void> {
  for (const claim of await kube.list(persistentVolumeClaims, guestVolume.label)) {
    const { finalizers = [], resourceVersion } = claim.metadata;
    if (!finalizers.includes(guestVolume.finalizer)) continue;
    const name = claim.spec?.volumeName;
    const volume = name ? await kube.get(persistentVolumes, { name }) : undefined;
    if (volume !== undefined && volume.spec?.persistentVolumeReclaimPolicy !== 'Retain')
      await kube.mergePatch(persistentVolumes, refOf(volume), { spec: { persistentVolumeReclaimPolicy: 'Retain' } });
    const others = finalizers.filter((one) => one !== guestVolume.finalizer);
    await kube.mergePatch(persistentVolumeClaims, refOf(claim), { metadata: { resourceVersion, finalizers: others } });
  }
}
