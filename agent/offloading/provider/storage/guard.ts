/** Provider: no claim goes with the namespace of a consumer before its data is safe, also one that was made while no webhook of ours was registered. */
import type { KubeApi } from '#kube/model/types.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { codeOf } from '#shared/errors/app-error.ts';

/** Its label and finalizer, in one write that is conditional on the version that was read. */
export async function guardClaim(
  api: KubeApi,
  claim: PersistentVolumeClaim,
  consumer: string,
  signal: AbortSignal,
): Promise<void> {
  const { uid, resourceVersion, finalizers = [] } = claim.metadata;
  const others = finalizers.filter((one) => one !== guestVolume.finalizer);
  const metadata = {
    uid,
    resourceVersion,
    labels: { [guestVolume.label]: consumer },
    finalizers: [...others, guestVolume.finalizer],
  };
  await api.mergePatch(persistentVolumeClaims, refOf(claim), { metadata }, { answer: 'metadata' }, signal);
}

/** Asks the API server. Fails when a claim changes meanwhile, so that the namespace stays for now; one that is gone needs no guard. */
export async function guardClaims(
  api: KubeApi,
  namespace: string,
  consumer: string,
  signal: AbortSignal,
): Promise<void> {
  for (const claim of await api.list(persistentVolumeClaims, { namespace }, signal)) {
    const { finalizers = [], labels, deletionTimestamp } = claim.metadata;
    const isGuarded = finalizers.includes(guestVolume.finalizer) && labels?.[guestVolume.label] === consumer;
    // None can be added to one that is going.
    if (isGuarded || deletionTimestamp !== undefined) continue;
    try {
      await guardClaim(api, claim, consumer, signal);
    } catch (error) {
      if (codeOf(error) !== 'kube_not_found') throw error;
    }
  }
}
