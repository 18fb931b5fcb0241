/**
 * What Kubernetes does with claims, volumes and their pods in one cluster of memory: the PersistentVolume controller, both protections, a provisioner
 * with disks, and a kubelet. Each call is one round of one of them; which come when is the history's.
 */
import { guestClaimPatch } from '#agent/offloading/provider/admission/guest-claim.ts';
import { amountOf } from '#agent/storage/model/claims.ts';
import { jsonPatched } from '#agent/testing/patched.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
} from '#shared/domain/core-kinds.ts';
import { type KubeObject, type Pod, refOf } from '#shared/domain/kube-object.ts';
import { provisionedBy } from '#shared/domain/storage-keys.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { MemoryCluster, type Random } from '../memory-cluster.ts';
import { SnapshotController } from './snapshot-controller.ts';

type Claim = PersistentVolumeClaim;

export interface Disk {
  readonly id: string;
  readonly cluster: string;
  readonly lines: Set<number>;
}

/** A pod that has a disk mounted: from its start to its end, also when its claim goes meanwhile. */
export interface Mount {
  readonly pod: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly disk: Disk;
}

export const diskDriver = 'disk.test';
const claimProtection = 'kubernetes.io/pvc-protection';
const volumeProtection = 'kubernetes.io/pv-protection';
export const diskClass = 'disk';
const resizerWorks = 'ControllerResizeInProgress';
const kubeletIsDue = 'NodeResizePending';
const resizes: ReadonlySet<string> = new Set(['Resizing', 'FileSystemResizePending']);
const withoutResize = ({ status }: Claim): readonly object[] =>
  (status?.conditions ?? []).filter(({ type }) => !resizes.has(type));

const protectedBy =
  (finalizer: string) =>
  (object: KubeObject): KubeObject => ({
    ...object,
    metadata: { ...object.metadata, finalizers: [...(object.metadata.finalizers ?? []), finalizer] },
  });
const hasEnded = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

export const claimsOf = ({ spec }: Pod): string[] =>
  (spec?.volumes ?? []).flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []);

export class Kubernetes {
  readonly name: string;
  readonly store: MemoryCluster;
  readonly snapshots: SnapshotController;
  readonly disks = new Map<string, Disk>();
  /** By UID of the pod. */
  readonly mounts = new Map<string, Mount>();
  /** No claim gets a disk: they are all full. */
  isFull = false;
  /** What the VolumeSnapshot of this name has; undefined: it cannot be used. `SnapshotController` says so. */
  linesOf: (namespace: string | undefined, name: string) => ReadonlySet<number> | undefined = () => undefined;
  /** The PersistentVolume controller writes the volume, its status and the claim in rounds of their own. */
  bindsSlowly = false;
  readonly #random: Random;

  /** `guests`: of which consumer the namespace `remoteNamespace` is. */
  constructor(
    name: string,
    clock: Clock,
    random: Random,
    guests?: { readonly consumer: string; readonly namespace: string },
  ) {
    this.name = name;
    this.store = new MemoryCluster(clock, random);
    this.#random = random;
    this.store.admit(persistentVolumeClaims.kind, (claim) => {
      const marked =
        guests && claim.metadata.namespace === guests.namespace
          ? jsonPatched(claim, guestClaimPatch(claim as Claim, guests.consumer) as never)
          : claim;
      const made = protectedBy(claimProtection)(marked);
      const creationTimestamp = new Date(clock.now()).toISOString();
      return { ...made, metadata: { ...made.metadata, creationTimestamp }, status: { phase: 'Pending' } } as never;
    });
    this.store.admit(
      persistentVolumes.kind,
      (volume) => ({ ...protectedBy(volumeProtection)(volume), status: { phase: 'Pending' } }) as never,
    );
    this.snapshots = new SnapshotController(this, clock, guests);
  }

  readonly coin = (chance: number): boolean => this.#random() < chance;

  claim(namespace: string | undefined, name: string): Claim | undefined {
    return this.store.now(persistentVolumeClaims, { ...(namespace && { namespace }), name });
  }
  volume(name: string | undefined): PersistentVolume | undefined {
    return name === undefined ? undefined : this.store.now(persistentVolumes, { name });
  }
  pod(namespace: string, name: string): Pod | undefined {
    return this.store.now(pods, { namespace, name });
  }

  #write(object: KubeObject, change: (spec: Record<string, unknown>, status: Record<string, unknown>) => void): void {
    const next = structuredClone(object) as KubeObject & {
      spec?: Record<string, unknown>;
      status?: Record<string, unknown>;
    };
    const [spec, status] = [next.spec ?? {}, next.status ?? {}];
    change(spec, status);
    next.spec = spec;
    if (Object.keys(status).length > 0) next.status = status;
    this.store.replace(next);
  }
  annotate(object: KubeObject, annotations: Readonly<Record<string, string>>): void {
    const metadata = { ...object.metadata, annotations: { ...object.metadata.annotations, ...annotations } };
    this.store.replace({ ...object, metadata });
  }
  setStatus(object: KubeObject, status: object): void {
    this.#write(object, (_, now) => Object.assign(now, status));
  }
  setSpec(object: KubeObject, spec: object): void {
    this.#write(object, (now) => Object.assign(now, spec));
  }
  #dropFinalizer(object: KubeObject, name: string): void {
    const finalizers = (object.metadata.finalizers ?? []).filter((one) => one !== name);
    this.store.replace({ ...object, metadata: { ...object.metadata, finalizers } });
  }

  /** One round of everything of this cluster that is not the scheduler's. Each thing happens now or later, by a coin. */
  play(isOwnNode: (node: string) => boolean, chance: number): void {
    for (const claim of this.store.all(persistentVolumeClaims)) if (this.coin(chance)) this.#tendClaim(claim);
    for (const volume of this.store.all(persistentVolumes)) if (this.coin(chance)) this.#tendVolume(volume);
    for (const pod of this.store.all(pods))
      if (isOwnNode(pod.spec?.nodeName ?? '') && this.coin(chance)) this.#tendPod(pod);
    this.snapshots.play(chance);
    this.store.collect();
  }

  #isUsed(claim: Claim): boolean {
    return this.store
      .all(pods)
      .some(
        (pod) =>
          pod.metadata.namespace === claim.metadata.namespace &&
          pod.spec?.nodeName !== undefined &&
          claimsOf(pod).includes(claim.metadata.name),
      );
  }

  #tendClaim(claim: Claim): void {
    const { deletionTimestamp, finalizers, name, namespace } = claim.metadata;
    if (deletionTimestamp !== undefined) {
      if (finalizers?.includes(claimProtection) && !this.#isUsed(claim)) {
        this.#dropFinalizer(claim, claimProtection);
        return;
      }
      // The PersistentVolume controller does not ask whether a claim is being deleted; the resizer and the provisioner are not played for one.
      const found = claim.status?.phase === 'Bound' ? undefined : this.#reservedFor(claim);
      if (found) this.#bind(claim, found);
      return;
    }
    if (claim.status?.phase === 'Bound') {
      this.#grow(claim);
      this.#growFileSystem(this.claim(namespace, name) ?? claim);
      return;
    }
    const reserved = this.#reservedFor(claim);
    if (reserved) {
      this.#bind(claim, reserved);
      return;
    }
    const wantsDisk = claim.spec?.storageClassName === diskClass && claim.spec.volumeName === undefined;
    if (wantsDisk && !this.isFull && (claim.metadata.annotations?.[selectedNode] !== undefined || this.#isUsed(claim)))
      this.#provision(claim);
  }

  #reservedFor(claim: Claim): PersistentVolume | undefined {
    const { name, namespace, uid } = claim.metadata;
    return this.store
      .all(persistentVolumes)
      .find(
        ({ spec, metadata }) =>
          metadata.deletionTimestamp === undefined &&
          spec?.claimRef?.name === name &&
          spec.claimRef.namespace === namespace &&
          (spec.claimRef.uid === undefined || spec.claimRef.uid === uid) &&
          (claim.spec?.volumeName === undefined || claim.spec.volumeName === metadata.name) &&
          amountOf(spec.capacity) >= amountOf(claim.spec?.resources?.requests),
      );
  }

  #bind(claim: Claim, volume: PersistentVolume): void {
    const { name, namespace, uid } = claim.metadata;
    if (this.bindsSlowly && volume.spec?.claimRef?.uid !== uid) {
      this.setSpec(volume, { claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid } });
      return;
    }
    if (this.bindsSlowly && volume.status?.phase !== 'Bound') {
      this.setStatus(volume, { phase: 'Bound' });
      return;
    }
    this.#write(volume, (spec, status) => {
      spec.claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid };
      status.phase = 'Bound';
    });
    this.#write(claim, (spec, status) => {
      spec.volumeName = volume.metadata.name;
      Object.assign(status, { phase: 'Bound', capacity: { storage: volume.spec?.capacity?.storage } });
    });
  }

  #provision(claim: Claim): void {
    const { namespace, name, uid = '' } = claim.metadata;
    const id = `${this.name}-${uid}`;
    const from = claim.spec?.dataSource;
    const lines =
      from?.kind === 'VolumeSnapshot'
        ? this.linesOf(namespace, from.name)
        : from && this.diskOf(namespace, from.name)?.lines;
    if (this.disks.has(id) || (from && lines === undefined)) return;
    this.disks.set(id, { id, cluster: this.name, lines: new Set(lines) });
    this.store.create({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `disk-${uid}`, annotations: { [provisionedBy]: diskDriver } },
      spec: {
        capacity: { storage: claim.spec?.resources?.requests?.storage },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: diskClass,
        csi: { driver: diskDriver, volumeHandle: id },
        claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
      },
    } as never);
  }

  /** A resizer, a step at a time. Of the provisioner's own volumes alone: claims of virtual classes grow by the agent. */
  #grow(claim: Claim): void {
    const volume = this.volume(claim.spec?.volumeName);
    const storage = claim.spec?.resources?.requests?.storage;
    if (volume?.metadata.annotations?.[provisionedBy] !== diskDriver || storage === undefined) return;
    const [asked, has] = [amountOf({ storage }), amountOf(claim.status?.capacity)];
    if (asked <= has) return;
    const turn = claim.status?.allocatedResourceStatuses?.storage;
    const says = (type: string, next: string): void =>
      this.setStatus(claim, {
        allocatedResources: { storage },
        allocatedResourceStatuses: { storage: next },
        conditions: [...withoutResize(claim), { type, status: 'True' }],
      });
    if (amountOf(volume.spec?.capacity) >= asked) {
      if (turn !== kubeletIsDue) says('FileSystemResizePending', kubeletIsDue);
    } else if (turn !== resizerWorks) says('Resizing', resizerWorks);
    else this.setSpec(volume, { capacity: { storage } });
  }

  /** The kubelet of a pod that has the volume, in one write. */
  #growFileSystem(claim: Claim): void {
    const { namespace, name } = claim.metadata;
    const disk = this.diskOf(namespace, name);
    const isMounted = [...this.mounts.values()].some((mount) => mount.disk === disk) && this.#isUsed(claim);
    const { capacity } = this.volume(claim.spec?.volumeName)?.spec ?? {};
    const isDue = claim.status?.allocatedResourceStatuses?.storage === kubeletIsDue;
    if (!isDue || !isMounted || amountOf(capacity) <= amountOf(claim.status?.capacity)) return;
    this.setStatus(claim, { capacity, allocatedResourceStatuses: {}, conditions: withoutResize(claim) });
  }

  #tendVolume(volume: PersistentVolume): void {
    const { claimRef, persistentVolumeReclaimPolicy: policy, csi } = volume.spec ?? {};
    const claim = this.claim(claimRef?.namespace, claimRef?.name ?? '');
    const hasClaim = claim !== undefined && claim.metadata.uid === claimRef?.uid;
    const isElsewhere = hasClaim && ![undefined, volume.metadata.name].includes(claim.spec?.volumeName);
    const isProvisioned = volume.metadata.annotations?.[provisionedBy] !== undefined;
    // Its claim took another volume before it was bound to this one, which is for the next claim of that name then.
    if (isElsewhere && !(isProvisioned && policy === 'Delete')) {
      const { uid: _, ...reservation } = claimRef ?? {};
      this.setSpec(volume, { claimRef: reservation });
      return;
    }
    const before = volume.status?.phase;
    const phase = claimRef?.uid === undefined ? 'Available' : hasClaim && !isElsewhere ? before : 'Released';
    if (phase !== before) {
      this.setStatus(volume, { phase });
      return;
    }
    if (
      volume.metadata.deletionTimestamp !== undefined &&
      phase !== 'Bound' &&
      volume.metadata.finalizers?.includes(volumeProtection)
    ) {
      this.#dropFinalizer(volume, volumeProtection);
      return;
    }
    const isOwn = volume.metadata.annotations?.[provisionedBy] === diskDriver;
    if (!isOwn || phase !== 'Released' || policy !== 'Delete') return;
    this.disks.delete(csi?.volumeHandle ?? '');
    this.store.delete(persistentVolumes, { name: volume.metadata.name });
  }

  /** What a pod that starts now would mount; undefined: it has to wait. */
  diskOf(namespace: string | undefined, claimName: string): Disk | undefined {
    const claim = this.claim(namespace, claimName);
    const volume = this.volume(claim?.spec?.volumeName);
    const isBound = claim?.status?.phase === 'Bound' && volume?.spec?.claimRef?.uid === claim.metadata.uid;
    const isOurs = volume?.spec?.csi?.driver === diskDriver;
    return isBound && isOurs ? this.disks.get(volume.spec?.csi?.volumeHandle ?? '') : undefined;
  }

  #tendPod(pod: Pod): void {
    const { uid = '', namespace, deletionTimestamp, labels = {} } = pod.metadata;
    if (deletionTimestamp !== undefined) {
      this.mounts.delete(uid);
      this.store.delete(pods, refOf(pod), { gracePeriodSeconds: 0 });
      return;
    }
    if (hasEnded(pod)) return void this.mounts.delete(uid);
    if (pod.status?.phase !== 'Pending') return;
    const [claimName] = claimsOf(pod);
    const claim = this.claim(namespace, claimName ?? '');
    // A kubelet starts no pod with a claim that is being deleted.
    const disk = claim?.metadata.deletionTimestamp === undefined ? this.diskOf(namespace, claimName ?? '') : undefined;
    if (!disk) return;
    this.mounts.set(uid, { pod: pod.metadata.name, labels, disk });
    this.setStatus(pod, { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] });
  }

  /** Its processes are gone with it. */
  forget(): void {
    const alive = new Set(this.store.all(pods).map(({ metadata }) => metadata.uid));
    for (const uid of this.mounts.keys()) if (!alive.has(uid)) this.mounts.delete(uid);
  }
}

export const selectedNode = 'volume.kubernetes.io/selected-node';
