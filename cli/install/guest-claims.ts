/** Claims and snapshots whose data must stay when the agent goes: those of guests, which it guards, and the real claims of volumes of this cluster. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { isChangedOrGone } from '#kube/writes/changed-or-gone.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import { guestSnapshot, guestVolume, keptAnnotation } from '#shared/domain/guest-volume-keys.ts';
import { type KubeObject, refOf } from '#shared/domain/kube-object.ts';
import {
  contentNameFor,
  type VolumeSnapshot,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/domain/snapshot-kinds.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';

const guardedBy =
  (finalizer: string) =>
  ({ metadata }: KubeObject): boolean =>
    metadata.finalizers?.includes(finalizer) ?? false;

/** First the volume or content keeps its data, then the finalizer goes: interrupted in between, a repetition goes on. False: some changed meanwhile, look again. */
export async function releaseGuestData(kube: KubeClient): Promise<boolean> {
  const claims = await kube.list(persistentVolumeClaims, guestVolume.label);
  const snapshots = await kube.list(volumeSnapshots, guestVolume.label);
  const kept = await kube.list(persistentVolumes, guestVolume.keptFor);
  const releases = [
    ...claims.filter(guardedBy(guestVolume.finalizer)).map((claim) => () => release(kube, claim)),
    ...snapshots.filter(guardedBy(guestSnapshot.finalizer)).map((snapshot) => () => releaseSnapshot(kube, snapshot)),
    ...kept.filter(isReserved).map((volume) => () => takeBack(kube, volume)),
  ];
  let isDone = true;
  for (const one of releases) {
    try {
      await one();
    } catch (error) {
      if (!isChangedOrGone(error)) throw error;
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

/** For the next claim of a name, by an order to adopt it. */
const isReserved = ({ spec }: PersistentVolume): boolean =>
  spec?.claimRef !== undefined && spec.claimRef.uid === undefined;

/** A claim that got it now would end without a mark on it. The order stays in its record, for the next installation. */
async function takeBack(kube: KubeClient, volume: PersistentVolume): Promise<void> {
  const { uid, resourceVersion, annotations = {} } = volume.metadata;
  const keptClaim = annotations[keptAnnotation.remoteClaim];
  if (keptClaim === undefined) return;
  const patch = { metadata: { uid, resourceVersion }, spec: { claimRef: JSON.parse(keptClaim) } };
  await kube.mergePatch(persistentVolumes, refOf(volume), patch);
}

async function releaseSnapshot(kube: KubeClient, snapshot: VolumeSnapshot): Promise<void> {
  const { namespace = '', name, finalizers = [], resourceVersion, uid = '' } = snapshot.metadata;
  const bound = contentNameFor(snapshot);
  const content = await kube.get(volumeSnapshotContents, { name: bound });
  const isOurs = content?.spec.volumeSnapshotRef.uid === uid;
  if (content !== undefined && isOurs && content.spec.deletionPolicy !== 'Retain') {
    const patch = { metadata: { uid: content.metadata.uid }, spec: { deletionPolicy: 'Retain' } };
    await kube.mergePatch(volumeSnapshotContents, { name: bound }, patch);
  }
  const others = finalizers.filter((one) => one !== guestSnapshot.finalizer);
  await kube.mergePatch(volumeSnapshots, { namespace, name }, { metadata: { resourceVersion, finalizers: others } });
}

/** Whether there are claims, asked now, that would go with the namespace of real claims. */
export const hasVolumes = async (kube: KubeClient): Promise<boolean> =>
  (await kube.list(persistentVolumeClaims, undefined, storageNamespace)).length > 0;
