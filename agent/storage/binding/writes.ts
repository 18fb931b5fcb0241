/** Writes of the binding controller: to the claim that waits for a volume, and to the real claims behind it. None reads a cache. */
import type { Cluster } from '#kube/model/types.ts';
import { isChangedOrGone } from '#kube/writes/changed-or-gone.ts';
import { createUnlessThere, deleteAsRead } from '#kube/writes/write-if-changed.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { type VolumeSnapshotContent, volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import { storageAnnotation, storageData } from '#shared/domain/storage-keys.ts';
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
      if (!isChangedOrGone(error)) throw error;
    }
  }

  /** First the content, by which the end of the claim is noticed: neither outlives it. */
  async function lend(claim: Claim, original: VolumeSnapshotContent, signal: AbortSignal): Promise<void> {
    await createUnlessThere(api, volumeSnapshotContents, lentContent(claim, original), signal);
    await createUnlessThere(api, volumeSnapshots, lentSnapshot(claim), signal);
  }

  /**
   * With the mark goes an order to delete that an earlier attempt may have left; `of: 'stray'` leaves one, because it may be the order of the claim that
   * is gone. Of the real claim as it was read: one whose order came meanwhile is read again. False: it has changed, or is gone.
   */
  async function unmark(
    { provider, object }: Backing,
    signal: AbortSignal,
    of: 'claim' | 'stray' = 'claim',
  ): Promise<boolean> {
    if (!isUnpublished(object)) return true;
    const { uid, resourceVersion } = object.metadata;
    const annotations = {
      [storageAnnotation.unpublished]: null,
      ...(of === 'claim' && { [storageAnnotation.data]: null }),
    };
    const patch = { metadata: { uid, resourceVersion, annotations } };
    try {
      await apiOf(provider)?.mergePatch(persistentVolumeClaims, refOf(object), patch, { answer: 'metadata' }, signal);
      return true;
    } catch (error) {
      if (!isChangedOrGone(error)) throw error;
      return false;
    }
  }

  /** Only what no volume of this cluster ever stood for: there is no data in it. Of the claim as it was read: one that is published meanwhile stays. */
  async function discard({ provider, object }: Backing, signal: AbortSignal): Promise<void> {
    const to = apiOf(provider);
    if (!to || object.metadata.deletionTimestamp !== undefined) return;
    try {
      const asRead = provider === undefined ? object : await orderDeletion(to, object, signal);
      await deleteAsRead(to, persistentVolumeClaims, asRead, signal);
    } catch (error) {
      if (!isChangedOrGone(error)) throw error;
    }
  }

  function orderDeletion(to: Cluster['api'], object: Claim, signal: AbortSignal): Promise<Claim> {
    const { uid, resourceVersion } = object.metadata;
    const patch = { metadata: { uid, resourceVersion, annotations: { [storageAnnotation.data]: storageData.delete } } };
    return to.mergePatch(persistentVolumeClaims, refOf(object), patch, { answer: 'metadata' }, signal);
  }

  return { reschedule, lend, unmark, discard };
}
