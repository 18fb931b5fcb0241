/** Provider: no claim goes with the namespace of a consumer before its data is safe, also one that was made while no webhook of ours was registered. */
import type { KubeApi } from '#kube/model/types.ts';
import { persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { codeOf } from '#shared/errors/app-error.ts';

/** Asks the API server. Fails when a claim changes meanwhile, so that the namespace stays for now; one that is gone needs no guard. */
export async function guardClaims(
  api: KubeApi,
  namespace: string,
  consumer: string,
  signal: AbortSignal,
): Promise<void> {
  for (const claim of await api.list(persistentVolumeClaims, { namespace }, signal)) {
    const { uid, resourceVersion, finalizers = [], labels, deletionTimestamp } = claim.metadata;
    const isGuarded = finalizers.includes(guestVolume.finalizer) && labels?.[guestVolume.label] === consumer;
    // None can be added to one that is going.
    if (isGuarded || deletionTimestamp !== undefined) continue;
    const others = finalizers.filter((one) => one !== guestVolume.finalizer);
    const metadata = {
      uid,
      resourceVersion,
      labels: { [guestVolume.label]: consumer },
      finalizers: [...others, guestVolume.finalizer],
    };
    try {
      await api.mergePatch(persistentVolumeClaims, refOf(claim), { metadata }, { answer: 'metadata' }, signal);
    } catch (error) {
      if (codeOf(error) !== 'kube_not_found') throw error;
    }
  }
}
