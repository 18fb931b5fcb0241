/** Writes of the binding controller: to the claim that waits for a volume, and to the real claims behind it. None reads a cache. */
import type { Cluster } from '#kube/model/types.ts';
import { createUnlessThere, deleteObject } from '#kube/writes/write-if-changed.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { type VolumeSnapshotContent, volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import { storageAnnotation, storageData } from '#shared/domain/storage-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { isUnpublished, selectedNode } from '../model/claims.ts';
import { lentContent, lentSnapshot } from '../snapshots/imports.ts';
import type { Backing } from './decide.ts';

type Claim = PersistentVolumeClaim;

/** `apiOf`: of this cluster without a provider; undefined where that provider cannot be reached. */
export function createBindingWrites(
  { api, events }: Pick<Cluster, 'api' | 'events'>,
  apiOf: (provider: string | undefined) => Cluster['api'] | undefined,
) {
  /** The scheduler chooses again: nothing of this attempt goes on. */
  async function reschedule(
    claim: Claim,
    message: string,
    signal: AbortSignal,
    reason = 'ProvisioningFailed',
  ): Promise<void> {
    events.emit(claim, 'Warning', reason, `${message}; the scheduler is asked to choose another node`);
    const { uid, resourceVersion } = claim.metadata;
    const patch = { metadata: { uid, resourceVersion, annotations: { [selectedNode]: null } } };
    try {
      await api.mergePatch(persistentVolumeClaims, refOf(claim), patch, { answer: 'metadata' }, signal);
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'kube_not_found' && code !== 'kube_conflict') throw error;
    }
  }

  /** First the content, by which the end of the claim is noticed: neither outlives it. */
  async function lend(claim: Claim, original: VolumeSnapshotContent, signal: AbortSignal): Promise<void> {
    await createUnlessThere(api, volumeSnapshotContents, lentContent(claim, original), signal);
    await createUnlessThere(api, volumeSnapshots, lentSnapshot(claim), signal);
  }

  async function unmark({ provider, object }: Backing, signal: AbortSignal): Promise<void> {
    if (!isUnpublished(object)) return;
    const patch = { metadata: { uid: object.metadata.uid, annotations: { [storageAnnotation.unpublished]: null } } };
    await apiOf(provider)?.mergePatch(persistentVolumeClaims, refOf(object), patch, { answer: 'metadata' }, signal);
  }

  /** Only what no volume of this cluster ever stood for: there is no data in it. Of the claim as it was read: one that is published meanwhile stays. */
  async function discard({ provider, object }: Backing, signal: AbortSignal): Promise<void> {
    const to = apiOf(provider);
    if (!to || object.metadata.deletionTimestamp !== undefined) return;
    const { uid, resourceVersion } = object.metadata;
    try {
      if (provider === undefined) {
        const only = { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) };
        await to.delete(persistentVolumeClaims, refOf(object), only, signal);
        return;
      }
      const patch = {
        metadata: { uid, resourceVersion, annotations: { [storageAnnotation.data]: storageData.delete } },
      };
      await to.mergePatch(persistentVolumeClaims, refOf(object), patch, { answer: 'metadata' }, signal);
      await deleteObject(to, persistentVolumeClaims, object, signal);
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'kube_conflict' && code !== 'kube_not_found') throw error;
    }
  }

  return { reschedule, lend, unmark, discard };
}
