/**
 * Two clusters, as far as a move can see them: claims, volumes with what was written to them, a StatefulSet of one pod that writes, movers, and the
 * controllers of Kubernetes that bind, place and delete. Each actor does one thing when it is called; the order is the test's.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod } from '#shared/domain/kube-object.ts';
import { moveGate, storageAnnotation } from '#shared/domain/storage-keys.ts';
import { type MoveOrder, type VolumeMove, volumeMoves } from '#shared/schema/isthmus/volume-move.ts';
import type { MoverResult } from '../mover/pull.ts';
import { decide } from '../moves/decide.ts';
import type { Facts, Patch, Step } from '../moves/facts.ts';
import { moverPod, stagingName } from '../moves/objects.ts';
import { hasEnded, isHeldBack, usesClaim } from '../moves/pods.ts';

type Claim = PersistentVolumeClaim;
interface Written {
  volume: PersistentVolume;
  readonly lines: Set<number>;
}

export const claimName = 'data';
const namespace = 'shop';
const app = 'app-0';
const startMs = 1_800_000_000_000;

/** As the API server does it. */
function merged(target: Record<string, unknown>, patch: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const result = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else if (typeof value === 'object' && !Array.isArray(value))
      result[key] = merged((result[key] as Record<string, unknown>) ?? {}, value as Record<string, unknown>);
    else result[key] = value;
  }
  return result;
}

export class MovingWorld {
  nowMs = startMs;
  move: VolumeMove | undefined;
  claims = new Map<string, Claim>();
  volumes = new Map<string, Written>();
  pods = new Map<string, Pod>();
  keys = false;
  service = false;
  /** Lines whose writer was told that they are safe. */
  acknowledged = new Set<number>();
  readonly faults: string[] = [];
  #count = 0;
  /** A webhook answered from before the claim was marked. */
  #blindAdmissions = 0;
  /** A step that was decided and not carried out yet. */
  #pending: Step | undefined;

  constructor() {
    const uid = this.#next('uid');
    const volume = this.#makeVolume(`pvc-${uid}`, { namespace, name: claimName, uid }, 'local');
    this.claims.set(claimName, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace, name: claimName, uid, resourceVersion: '1' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: 'liqo',
        volumeName: volume.volume.metadata.name,
      },
      status: { phase: 'Bound' },
    } as Claim);
    this.move = {
      apiVersion: 'isthmus.dev/v1alpha1',
      kind: volumeMoves.kind,
      metadata: { namespace, name: claimName, uid: 'move-uid', resourceVersion: '1', generation: 1 },
      spec: { target: 'milan', undoWindowSeconds: 3_600 },
    };
  }

  #next(prefix: string): string {
    this.#count += 1;
    return `${prefix}-${this.#count}`;
  }

  #makeVolume(name: string, claimRef: { namespace: string; name: string; uid: string }, at: string): Written {
    const volume = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name, uid: this.#next('uid'), resourceVersion: '1' },
      spec: {
        capacity: { storage: '1Gi' },
        persistentVolumeReclaimPolicy: 'Delete',
        claimRef,
        ...(at !== 'local' && { csi: { driver: 'storage.isthmus.dev', volumeHandle: `${at}/shop-rome/${name}` } }),
      },
      status: { phase: 'Bound' },
    } as unknown as PersistentVolume;
    const written = { volume, lines: new Set<number>() };
    this.volumes.set(name, written);
    return written;
  }

  #touch<T extends KubeObject>(object: T): T {
    return { ...object, metadata: { ...object.metadata, resourceVersion: this.#next('v') } };
  }

  /** What the controller reads now. */
  facts(): Facts | undefined {
    const { move } = this;
    if (move === undefined) return undefined;
    const phase = move.status?.phase ?? 'Pending';
    const claim = this.claims.get(claimName);
    const staging = this.claims.get(stagingName(move));
    const volume = (name: string | undefined) => this.volumes.get(name ?? '')?.volume;
    const to = volume(move.status?.to?.volume ?? staging?.spec?.volumeName);
    return {
      move,
      nowMs: this.nowMs,
      claim,
      staging,
      from: volume(phase === 'Pending' ? claim?.spec?.volumeName : move.status?.from?.volume),
      to,
      pods: [...this.pods.values()],
      image: 'image',
      refusal: undefined,
      keys: this.keys,
      service: this.service,
      progress: undefined,
      mountedBy: [],
      real: to && this.#realOf(to),
    };
  }

  readonly #realHomes = new Map<string, Claim>();
  /** It names the claim that the volume was made for until it is told otherwise. */
  #realOf({ metadata }: PersistentVolume): Claim {
    const found = this.#realHomes.get(metadata.name) ?? {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: metadata.name, annotations: {}, resourceVersion: '1' },
    };
    this.#realHomes.set(metadata.name, found);
    return found;
  }

  /** The agent decides; whether it lives to carry that out, and how much later, is the schedule's. */
  think(): void {
    const facts = this.facts();
    this.#pending = facts && decide(facts);
  }
  /** The agent ends between thinking and writing. */
  crash(): void {
    this.#pending = undefined;
  }
  act(): void {
    const step = this.#pending;
    this.#pending = undefined;
    if (step) this.#write(step);
  }

  #patched<T extends KubeObject>(now: T | undefined, read: T, patch: Patch): T | undefined {
    if (now === undefined || now.metadata.resourceVersion !== read.metadata.resourceVersion) return undefined;
    return this.#touch(merged(now as unknown as Record<string, unknown>, { ...patch }) as unknown as T);
  }

  #write(step: Step): void {
    const { move } = this;
    if (move === undefined) return;
    switch (step.do) {
      case 'status':
        this.#sayStatus(step.status);
        break;
      case 'guard':
      case 'unguard':
        this.move = { ...move, metadata: { ...move.metadata, finalizers: step.do === 'guard' ? [moveGate] : [] } };
        if (step.do === 'unguard' && move.metadata.deletionTimestamp) this.move = undefined;
        break;
      case 'createKeys':
      case 'deleteKeys':
        this.keys = step.do === 'createKeys';
        break;
      case 'createService':
      case 'deleteService':
        this.service = step.do === 'createService';
        break;
      case 'createPod': {
        const pod = moverPod(move, step.role, { image: 'image', claim: step.claim, at: step.at, node: step.node });
        if (!this.pods.has(pod.metadata.name)) this.#addPod(pod);
        break;
      }
      case 'deletePod':
        if (this.pods.get(step.pod.metadata.name)?.metadata.uid === step.pod.metadata.uid)
          this.#markPod(step.pod.metadata.name);
        break;
      case 'ungate': {
        const pod = this.pods.get(step.pod.metadata.name);
        if (pod?.metadata.uid === step.pod.metadata.uid && pod)
          this.pods.set(pod.metadata.name, { ...pod, spec: { ...pod.spec, schedulingGates: [] } } as Pod);
        break;
      }
      case 'createClaim':
        if (!this.claims.has(step.claim.metadata.name)) this.#addClaim(step.claim);
        break;
      case 'deleteClaim': {
        const now = this.claims.get(step.claim.metadata.name);
        if (now?.metadata.uid === step.claim.metadata.uid && now)
          this.claims.set(
            now.metadata.name,
            this.#touch({ ...now, metadata: { ...now.metadata, deletionTimestamp: 'now' } }),
          );
        break;
      }
      case 'patchClaim': {
        const next = this.#patched(this.claims.get(step.claim.metadata.name), step.claim, step.patch);
        if (next) this.claims.set(next.metadata.name, next);
        break;
      }
      case 'patchVolume': {
        const written = this.volumes.get(step.volume.metadata.name);
        const next = this.#patched(written?.volume, step.volume, step.patch);
        if (written && next) written.volume = next;
        break;
      }
      case 'patchReal': {
        const next = this.#patched(this.#realHomes.get(step.claim.metadata.name), step.claim, step.patch);
        if (next) this.#realHomes.set(next.metadata.name, next);
        break;
      }
      case 'nothing':
      case 'wait':
        break;
    }
  }

  #sayStatus(status: NonNullable<VolumeMove['status']>): void {
    if (this.move === undefined) return;
    const before = this.move.status;
    this.move = { ...this.move, status };
    // What was written since the switch is given up, as ordered.
    if (before?.phase === 'Freezing' && status.phase === 'Switching' && status.withoutCopy)
      this.acknowledged = new Set(this.volumes.get(status.to?.volume ?? '')?.lines ?? []);
  }

  #addPod(pod: Pod): void {
    const metadata = { ...pod.metadata, uid: this.#next('uid'), creationTimestamp: new Date(this.nowMs).toISOString() };
    this.pods.set(pod.metadata.name, { ...pod, metadata, status: { phase: 'Pending' } } as Pod);
  }
  #addClaim(claim: Claim): void {
    const metadata = { ...claim.metadata, uid: this.#next('uid'), resourceVersion: '1' };
    this.claims.set(claim.metadata.name, { ...claim, metadata, status: { phase: 'Pending' } } as Claim);
  }
  #markPod(name: string): void {
    const pod = this.pods.get(name);
    if (!pod) return;
    if (pod.spec?.nodeName === undefined) this.pods.delete(name);
    else this.pods.set(name, { ...pod, metadata: { ...pod.metadata, deletionTimestamp: 'now' } });
  }

  /** kube-controller-manager: the claim of the StatefulSet, then its pod, which the webhook may hold back. */
  statefulSet(): void {
    const pod = this.pods.get(app);
    const claim = this.claims.get(claimName);
    if ((pod === undefined || pod.spec?.nodeName === undefined) && claim === undefined) {
      this.#addClaim({
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { namespace, name: claimName },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      } as Claim);
      return;
    }
    if (pod !== undefined || claim?.metadata.deletionTimestamp !== undefined) return;
    const isMoving = claim?.metadata.annotations?.[storageAnnotation.moving] !== undefined;
    const blind = isMoving && this.#blindAdmissions > 0;
    if (blind) this.#blindAdmissions -= 1;
    this.#addPod({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        namespace,
        name: app,
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'app', uid: 'set', controller: true }],
      },
      spec: {
        containers: [],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
        ...(isMoving && !blind && { schedulingGates: [{ name: moveGate }] }),
      },
    } as unknown as Pod);
  }
  /** The next pod is admitted by a webhook that does not see the mark yet. */
  blind(): void {
    this.#blindAdmissions = 1;
  }

  /** kube-controller-manager and the provisioner: one claim or volume. */
  bind(): void {
    for (const claim of this.claims.values()) {
      const { name, uid = '', deletionTimestamp, finalizers = [] } = claim.metadata;
      if (deletionTimestamp !== undefined) {
        const used = [...this.pods.values()].some((pod) => usesClaim(pod, name) && pod.spec?.nodeName !== undefined);
        if (!used && finalizers.length === 0) return void this.claims.delete(name);
        continue;
      }
      if (claim.status?.phase === 'Bound') continue;
      const reserved = [...this.volumes.values()].find(
        ({ volume: { spec } }) =>
          spec?.claimRef?.name === name && (spec.claimRef.uid === undefined || spec.claimRef.uid === uid),
      );
      const wanted = claim.spec?.volumeName;
      if (reserved && (wanted === undefined || wanted === reserved.volume.metadata.name))
        return void this.#bound(claim, reserved, uid);
      if (wanted !== undefined) continue;
      const placed = [...this.pods.values()].find((pod) => usesClaim(pod, name) && !isHeldBack(pod));
      // The StatefulSet's own claim has no node as long as its pod is held back; placed at last, it would begin empty.
      if (placed)
        return void this.#bound(
          claim,
          this.#makeVolume(`pvc-${uid}`, { namespace, name, uid }, name === claimName ? 'local' : 'milan'),
          uid,
        );
    }
    for (const written of this.volumes.values()) {
      const { claimRef, persistentVolumeReclaimPolicy } = written.volume.spec ?? {};
      const claim = this.claims.get(claimRef?.name ?? '');
      const phase =
        claimRef?.uid === undefined ? 'Available' : claim?.metadata.uid === claimRef.uid ? 'Bound' : 'Released';
      if (phase !== written.volume.status?.phase) {
        written.volume = this.#touch({ ...written.volume, status: { phase } } as PersistentVolume);
        return;
      }
      if (phase === 'Released' && persistentVolumeReclaimPolicy === 'Delete')
        return void this.volumes.delete(written.volume.metadata.name);
    }
  }

  #bound(claim: Claim, written: Written, uid: string): void {
    const { claimRef } = written.volume.spec ?? {};
    written.volume = this.#touch({
      ...written.volume,
      spec: { ...written.volume.spec, claimRef: { ...claimRef, uid } },
      status: { phase: 'Bound' },
    } as PersistentVolume);
    const spec = { ...claim.spec, volumeName: written.volume.metadata.name };
    this.claims.set(claim.metadata.name, this.#touch({ ...claim, spec, status: { phase: 'Bound' } } as Claim));
  }

  /** The scheduler and the kubelet: pods are placed and start. */
  place(): void {
    for (const pod of this.pods.values()) {
      if (pod.status?.phase !== 'Pending' || isHeldBack(pod) || pod.metadata.deletionTimestamp) continue;
      const claim = this.claims.get(pod.spec?.volumes?.[0]?.persistentVolumeClaim?.claimName ?? '');
      if (claim?.status?.phase !== 'Bound') continue;
      if (pod.spec?.nodeName === undefined && claim.metadata.deletionTimestamp !== undefined) continue;
      if (pod.spec?.nodeName === undefined) {
        this.pods.set(pod.metadata.name, { ...pod, spec: { ...pod.spec, nodeName: 'somewhere' } } as Pod);
        return;
      }
      this.pods.set(pod.metadata.name, {
        ...pod,
        status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
      } as Pod);
      return;
    }
  }

  /** Kubelets: pods that were deleted end. */
  end(): void {
    for (const pod of this.pods.values())
      if (pod.metadata.deletionTimestamp !== undefined) return void this.pods.delete(pod.metadata.name);
  }

  #lines(claim: string): Set<number> | undefined {
    return this.volumes.get(this.claims.get(claim)?.spec?.volumeName ?? '')?.lines;
  }

  /** The application writes a line and is told that it is safe; what it finds must be all that it was ever told. */
  write(): void {
    const pod = this.pods.get(app);
    if (pod?.status?.phase !== 'Running') return;
    const lines = this.#lines(claimName);
    if (lines === undefined) return void this.faults.push('a pod runs whose claim has no volume');
    const lost = [...this.acknowledged].filter((line) => !lines.has(line));
    if (lost.length > 0) this.faults.push(`${lost.length} acknowledged lines are lost in ${this.move?.status?.phase}`);
    this.#count += 1;
    lines.add(this.#count);
    this.acknowledged.add(this.#count);
  }

  /** Movers: one that fetches goes a step further. `fails`: it breaks off. */
  copy(fails: boolean): void {
    const sends = [...this.pods.values()].some(
      ({ metadata, status }) => metadata.name.endsWith('-send') && status?.phase === 'Running',
    );
    const fetch = [...this.pods.values()].find(
      (pod) => /-(live|final)$/.test(pod.metadata.name) && pod.status?.phase === 'Running' && !hasEnded(pod),
    );
    if (fetch === undefined || this.move === undefined) return;
    const from = this.#lines(claimName);
    const to = this.#lines(stagingName(this.move));
    if (!sends || fails || !from || !to) return void this.#ended(fetch, { ok: false, error: 'it broke off' });
    to.clear();
    for (const line of from) to.add(line);
    const isFinal = fetch.metadata.name.endsWith('-final');
    this.#ended(fetch, isFinal ? { ok: true, verified: { files: to.size, bytes: to.size } } : { ok: true, passes: 1 });
  }
  #ended(pod: Pod, result: MoverResult): void {
    const terminated = { exitCode: result.ok ? 0 : 1, message: JSON.stringify(result) };
    const status = { phase: result.ok ? 'Succeeded' : 'Failed', containerStatuses: [{ state: { terminated } }] };
    this.pods.set(pod.metadata.name, { ...pod, status } as unknown as Pod);
  }

  order(order: MoveOrder): void {
    if (this.move)
      this.move = {
        ...this.move,
        metadata: { ...this.move.metadata, generation: (this.move.metadata.generation ?? 0) + 1 },
        spec: { ...this.move.spec, order },
      };
  }
  remove(): void {
    if (this.move?.metadata.finalizers?.length)
      this.move = { ...this.move, metadata: { ...this.move.metadata, deletionTimestamp: 'now' } };
    else this.move = undefined;
  }
}
