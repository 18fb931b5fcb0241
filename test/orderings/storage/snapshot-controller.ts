/**
 * Kubernetes' snapshot controller and the snapshotter of the disks' driver in one cluster of memory, a write at a time as the real ones have it: the content of a
 * VolumeSnapshot that is deleted goes at once if its policy is Delete, also while other finalizers hold the VolumeSnapshot.
 */
import { guestSnapshotPatch } from '#agent/offloading/provider/admission/guest-snapshot.ts';
import { jsonPatched } from '#agent/testing/patched.ts';
import { persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { type KubeObject, refOf } from '#shared/domain/kube-object.ts';
import {
  beingDeleted,
  contentFinalizer,
  contentNameOf,
  snapshotControllerPrefix,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/domain/snapshot-kinds.ts';
import { remoteVolumeDriver } from '#shared/domain/storage-keys.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type Disk, diskDriver, type Kubernetes } from './kubernetes.ts';

const asSource = `${snapshotControllerPrefix}volumesnapshot-as-source-protection`;
const bound = `${snapshotControllerPrefix}volumesnapshot-bound-protection`;

export class SnapshotController {
  /** What snapshots have, by their handles. */
  readonly data = new Map<string, ReadonlySet<number>>();
  readonly #cluster: Kubernetes;
  readonly #clock: Clock;

  /** `guests`: of which consumer the namespace is, by whose agent all VolumeSnapshots in it are made. */
  constructor(cluster: Kubernetes, clock: Clock, guests?: { readonly consumer: string; readonly namespace: string }) {
    this.#cluster = cluster;
    this.#clock = clock;
    const creationTimestamp = (): string => new Date(clock.now()).toISOString();
    cluster.store.admit(volumeSnapshots.kind, (given) => {
      const object = { ...given, metadata: { ...given.metadata, creationTimestamp: creationTimestamp() } };
      if (guests?.namespace !== object.metadata.namespace) return object;
      const snapshot = object as unknown as VolumeSnapshot;
      const claim = cluster.claim(guests?.namespace, snapshot.spec.source?.persistentVolumeClaimName ?? '');
      const volume = cluster.volume(claim?.spec?.volumeName);
      return jsonPatched(object, guestSnapshotPatch(snapshot, guests?.consumer ?? '', { claim, volume }) as never);
    });
    cluster.store.admit(volumeSnapshotContents.kind, (given) => ({
      ...given,
      metadata: { ...given.metadata, creationTimestamp: creationTimestamp() },
    }));
    cluster.linesOf = (namespace, name) => this.#linesOf(namespace, name);
  }

  get #store() {
    return this.#cluster.store;
  }

  /** One round; each thing happens now with this chance, else later. */
  play(chance: number): void {
    for (const one of this.#store.all(volumeSnapshots)) if (this.#cluster.coin(chance)) this.#tend(one);
    for (const one of this.#store.all(volumeSnapshotContents)) if (this.#cluster.coin(chance)) this.#tendContent(one);
  }

  #linesOf(namespace: string | undefined, name: string): ReadonlySet<number> | undefined {
    const snapshot = this.#store.now(volumeSnapshots, { ...(namespace && { namespace }), name });
    const content = this.#contentOf(snapshot);
    return snapshot?.status?.readyToUse && content?.spec.driver === diskDriver
      ? this.data.get(content.status?.snapshotHandle ?? '')
      : undefined;
  }

  #contentOf(snapshot: VolumeSnapshot | undefined): VolumeSnapshotContent | undefined {
    if (snapshot === undefined) return undefined;
    const { status, spec, metadata } = snapshot;
    const name =
      status?.boundVolumeSnapshotContentName ??
      spec.source?.volumeSnapshotContentName ??
      contentNameOf(metadata.uid ?? '');
    return this.#store.now(volumeSnapshotContents, { name });
  }

  #setMetadata(object: KubeObject, metadata: object): void {
    this.#store.replace({ ...object, metadata: { ...object.metadata, ...metadata } });
  }
  #drop(object: KubeObject, gone: readonly string[]): void {
    this.#setMetadata(object, {
      finalizers: (object.metadata.finalizers ?? []).filter((one) => !gone.includes(one)),
    });
  }

  #tend(snapshot: VolumeSnapshot): void {
    const { metadata, spec, status } = snapshot;
    const { finalizers = [], namespace, name, uid = '' } = metadata;
    const content = this.#contentOf(snapshot);
    if (metadata.deletionTimestamp !== undefined) {
      this.#end(snapshot, content);
      return;
    }
    const missing = [asSource, ...(content ? [bound] : [])].filter((one) => !finalizers.includes(one));
    if (missing.length > 0) {
      this.#setMetadata(snapshot, { finalizers: [...finalizers, ...missing] });
      return;
    }
    const of = spec.source?.persistentVolumeClaimName;
    if (content === undefined) {
      const claim = of === undefined ? undefined : this.#cluster.claim(namespace, of);
      const csi = this.#cluster.volume(claim?.spec?.volumeName)?.spec?.csi;
      if (claim?.status?.phase !== 'Bound' || csi === undefined) return;
      this.#store.create({
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: volumeSnapshotContents.kind,
        metadata: { name: contentNameOf(uid) },
        spec: {
          deletionPolicy: 'Delete',
          driver: csi.driver,
          source: { volumeHandle: csi.volumeHandle },
          sourceVolumeMode: 'Filesystem',
          volumeSnapshotRef: { namespace, name, uid },
        },
      } as never);
      return;
    }
    const ref = content.spec.volumeSnapshotRef;
    if (of === undefined && ref.uid === undefined) {
      this.#cluster.setSpec(content, { volumeSnapshotRef: { ...ref, uid } });
      return;
    }
    const said = content.status;
    if (ref.uid !== uid || status?.readyToUse) return;
    this.#cluster.setStatus(snapshot, {
      boundVolumeSnapshotContentName: content.metadata.name,
      readyToUse: said?.readyToUse ?? false,
      ...(said?.creationTime !== undefined && { creationTime: new Date(said.creationTime / 1e6).toISOString() }),
      ...(said?.restoreSize !== undefined && { restoreSize: String(said.restoreSize) }),
      ...(said?.error && { error: said.error }),
    });
  }

  #end(snapshot: VolumeSnapshot, content: VolumeSnapshotContent | undefined): void {
    const { finalizers = [], namespace, name, uid } = snapshot.metadata;
    if (!finalizers.includes(asSource) && !finalizers.includes(bound)) return;
    const isSource = this.#store
      .all(persistentVolumeClaims)
      .some(
        (claim) =>
          claim.metadata.namespace === namespace &&
          claim.spec?.dataSource?.kind === 'VolumeSnapshot' &&
          claim.spec.dataSource.name === name &&
          claim.status?.phase === 'Pending',
      );
    if (isSource) return;
    const own = content?.spec.volumeSnapshotRef.uid === uid ? content : undefined;
    if (own && own.metadata.annotations?.[beingDeleted] === undefined) {
      this.#cluster.annotate(own, { [beingDeleted]: 'yes' });
      return;
    }
    const takesAlong = own?.spec.deletionPolicy === 'Delete';
    if (own && takesAlong && own.metadata.deletionTimestamp === undefined)
      return void this.#store.delete(volumeSnapshotContents, refOf(own));
    const gone = takesAlong ? [asSource] : [asSource, bound];
    if (finalizers.some((one) => gone.includes(one))) this.#drop(snapshot, gone);
  }

  #tendContent(content: VolumeSnapshotContent): void {
    const { metadata, spec } = content;
    const { finalizers = [], deletionTimestamp } = metadata;
    const isBound = spec.volumeSnapshotRef.uid !== undefined;
    if (isBound && deletionTimestamp === undefined && !finalizers.includes(contentFinalizer)) {
      this.#setMetadata(content, { finalizers: [...finalizers, contentFinalizer] });
      return;
    }
    if (spec.driver !== remoteVolumeDriver) this.#tendOfDriver(content);
  }

  #tendOfDriver(content: VolumeSnapshotContent): void {
    const { metadata, spec, status } = content;
    const handle = status?.snapshotHandle;
    if (metadata.deletionTimestamp !== undefined) {
      const isToGo = !spec.volumeSnapshotRef.uid || metadata.annotations?.[beingDeleted] !== undefined;
      if (!isToGo || !metadata.finalizers?.includes(contentFinalizer)) return;
      if (spec.deletionPolicy === 'Delete' && handle !== undefined) this.data.delete(handle);
      this.#drop(content, [contentFinalizer]);
      return;
    }
    if (status?.readyToUse) return;
    const { volumeHandle, snapshotHandle } = spec.source;
    const disk: Disk | undefined = this.#cluster.disks.get(volumeHandle ?? '');
    const made = snapshotHandle ?? `snap-${metadata.uid}`;
    if (disk && !this.data.has(made)) this.data.set(made, new Set(disk.lines));
    if (!this.data.has(made)) return;
    this.#cluster.setStatus(content, {
      snapshotHandle: made,
      readyToUse: true,
      creationTime: Math.floor(this.#clock.now() / 1000) * 1e9,
      restoreSize: 2 ** 30,
    });
  }
}
