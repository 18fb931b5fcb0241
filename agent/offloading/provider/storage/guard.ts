/** Provider: no claim goes with the namespace of a consumer before its data is safe, also one that was made while no webhook of ours was registered. */
import type { KubeApi } from '#kube/model/types.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { guardingPatch, isGuarded } from '../model/guest-guard.ts';

/** Rejects with `kube_conflict` when the claim has changed since it was read. */
export async function guardClaim(
  api: KubeApi,
  claim: PersistentVolumeClaim,
  consumer: string,
  signal: AbortSignal,
): Promise<void> {
  const patch = guardingPatch(claim, guestVolume.finalizer, consumer);
  await api.mergePatch(persistentVolumeClaims, refOf(claim), patch, { answer: 'metadata' }, signal);
}

/** Asks the API server. Fails when a claim changes meanwhile, so that the namespace stays for now; one that is gone needs no guard. */
export async function guardClaims(
  api: KubeApi,
  namespace: string,
  consumer: string,
  signal: AbortSignal,
): Promise<void> {
  for (const claim of await api.list(persistentVolumeClaims, { namespace }, signal)) {
    // No finalizer can be added to one that is going.
    if (isGuarded(claim, guestVolume.finalizer, consumer) || claim.metadata.deletionTimestamp !== undefined) continue;
    try {
      await guardClaim(api, claim, consumer, signal);
    } catch (error) {
      if (codeOf(error) !== 'kube_not_found') throw error;
    }
  }
}
