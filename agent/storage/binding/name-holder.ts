/** Whether the claim that has a name at a provider makes room for the next one of that name. */
import type { KubeApi } from '#kube/model/types.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { homeClaimOf } from '#shared/domain/storage-keys.ts';
import { volumeNameOf } from '../model/claims.ts';

/**
 * That the claim in this cluster behind it is gone and its data goes with it, so that its name is free soon. An order to adopt kept data names the claim
 * by that name: it would miss a claim that got another one. `api`: of this cluster.
 */
export async function isGoing(
  { metadata }: PersistentVolumeClaim,
  api: KubeApi,
  signal: AbortSignal,
): Promise<boolean> {
  if (metadata.deletionTimestamp !== undefined) return true;
  const home = homeClaimOf(metadata.annotations);
  if (home === undefined) return false;
  const [owner, volume] = await Promise.all([
    api.get(persistentVolumeClaims, home, signal),
    api.get(persistentVolumes, { name: volumeNameOf(home.uid) }, signal),
  ]);
  return owner?.metadata.uid !== home.uid && volume?.spec?.persistentVolumeReclaimPolicy === 'Delete';
}
