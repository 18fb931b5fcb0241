/** Provider: no VolumeSnapshot goes with the namespace of a consumer before its content keeps its data, also one that was made while no webhook of ours was registered. */

import { listIfServed } from '#kube/model/optional-kind.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { guestSnapshot } from '#shared/domain/guest-volume-keys.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { contentNameFor, volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { guardingPatch, isGuarded } from '../model/guest-guard.ts';
import { guardPatch } from './decide.ts';

/** Asks the API server. Fails when one changes meanwhile, so that the namespace stays for now; one that is gone needs no guard. */
export async function guardSnapshots(
  api: KubeApi,
  namespace: string,
  consumer: string,
  signal: AbortSignal,
): Promise<void> {
  for (const snapshot of (await listIfServed(api, volumeSnapshots, { namespace }, signal)) ?? []) {
    try {
      const isMarked = isGuarded(snapshot, guestSnapshot.finalizer, consumer);
      // No finalizer can be added to one that is going.
      if (!isMarked && snapshot.metadata.deletionTimestamp === undefined) {
        const marks = guardingPatch(snapshot, guestSnapshot.finalizer, consumer);
        await api.mergePatch(volumeSnapshots, refOf(snapshot), marks, { answer: 'metadata' }, signal);
      }
      const content = await api.get(volumeSnapshotContents, { name: contentNameFor(snapshot) }, signal);
      const patch = guardPatch({ snapshot, consumer, content });
      if (patch !== undefined && content !== undefined)
        await api.mergePatch(volumeSnapshotContents, refOf(content), patch, { answer: 'metadata' }, signal);
    } catch (error) {
      if (codeOf(error) !== 'kube_not_found') throw error;
    }
  }
}
