/**
 * A consumer and two providers in memory with the agents' own controllers of storage, whose every write may be the last of its agent; all else of
 * Kubernetes is played, down to disks with what was written to them. What must always hold is asked after every single write.
 */
import { gatePatch } from '#agent/offloading/consumer/admission/pod.ts';
import { amountOf } from '#agent/storage/model/claims.ts';
import { jsonPatched } from '#agent/testing/patched.ts';
import {
  namespaces,
  nodes,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
} from '#shared/domain/core-kinds.ts';
import { type KubeObject, type Pod, refOf } from '#shared/domain/kube-object.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import {
  remoteClaimOf,
  remoteVolumeDriver,
  storageAnnotation,
  virtualProvisioner,
} from '#shared/domain/storage-keys.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { type VolumeMove, type VolumeMoveStatus, volumeMoves } from '#shared/schema/isthmus/volume-move.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import type { Random } from '../memory-cluster.ts';
import { Agents } from './agents.ts';
import { claimsOf, type Disk, diskClass, Kubernetes } from './kubernetes.ts';
import { consumer, nodeOf, ownNode, type ProviderName, providerNames, shop, shopThere, virtualClass } from './names.ts';
import { type App, type From, Played } from './played.ts';

const over: ReadonlySet<string> = new Set(['Refused', 'Confirmed', 'Undone', 'Aborted']);
/** In them the move may delete, or hand over, the volume that is not the claim's. */
const ending: ReadonlySet<string> = new Set(['Discarding', 'Keeping', ...over]);

/** Without time going by. */
const mostWritesAtOnce = 5_000;

export class StorageWorld {
  readonly clock = new ManualClock();
  readonly home: Kubernetes;
  readonly providers: ReadonlyMap<ProviderName, Kubernetes>;
  readonly apps = new Map<string, App>();
  readonly agents: Agents;
  readonly faults: string[] = [];
  /** PersistentVolumes that a person has given the policy Retain. */
  readonly retained = new Set<string>();
  /** How many moves entered each phase. */
  readonly phases = new Map<string, number>();
  /** The next pod is admitted by a webhook that has read its claim before that was marked as one that moves. */
  isBlind = false;
  /** Happens once, to the application whose freeze begins next. */
  onFreeze: ((app: App) => void) | undefined;
  readonly #played: Played;
  readonly #peered = new Set<string>();
  /** By UID of the move: the disk to which it can be undone. */
  readonly #undoable = new Map<string, Disk>();
  /** UIDs of moves whose last order is a confirmation from before the switch, which the rules of the kind would refuse. */
  readonly #early = new Set<string>();
  /** Disks that were handed over to records, and those of retained volumes. */
  readonly #kept = new Set<Disk>();
  #line = 0;
  #writesAt = { ms: 0, count: 0 };

  constructor(random: Random) {
    this.home = new Kubernetes(consumer, this.clock, random);
    const guests = { consumer, namespace: shopThere };
    this.providers = new Map(providerNames.map((name) => [name, new Kubernetes(name, this.clock, random, guests)]));
    const fault = (what: string): void => this.#fault(what);
    this.#played = new Played(this.home, this.providers, this.apps, random, fault);
    const clusters = new Map<string, Kubernetes>([[consumer, this.home], ...this.providers]);
    this.agents = new Agents({ clusters, peered: this.#peered, clock: this.clock, random, fault });
    this.home.store.admit(pods.kind, (pod) => this.#admitPod(pod as unknown as Pod) as never);
    this.#furnish();
    for (const { store } of this.clusters) store.onWrite = (before, after) => this.#onWrite(before, after);
    for (const name of providerNames) this.peer(name);
    this.agents.start();
  }

  get clusters(): readonly Kubernetes[] {
    return [this.home, ...this.providers.values()];
  }
  #provider(name: string): Kubernetes {
    const found = this.providers.get(name as ProviderName);
    if (!found) throw new Error(`no provider ${name}`);
    return found;
  }

  #furnish(): void {
    const { store } = this.home;
    const waits = { volumeBindingMode: 'WaitForFirstConsumer', reclaimPolicy: 'Delete' };
    for (const name of [shop, 'liqo-storage', 'liqo']) store.create(namespace(name));
    for (const object of [
      { kind: 'StorageClass', metadata: { name: virtualClass }, provisioner: virtualProvisioner, ...waits },
      { kind: 'StorageClass', metadata: { name: diskClass }, provisioner: 'disk.test', ...waits },
      { kind: 'Node', metadata: { name: ownNode } },
      {
        kind: namespaceOffloadings.kind,
        metadata: { namespace: shop, name: 'offloading' },
        spec: { podOffloadingStrategy: 'LocalAndRemote' },
      },
      {
        kind: 'Pod',
        metadata: { namespace: 'liqo', name: 'agent' },
        spec: { containers: [{ name: 'agent', image: 'agent:1' }] },
      },
    ])
      store.create(object as never);
  }

  // What users do.

  /** `from`: as what its claim is to begin. */
  addApp(name: string, from?: From): void {
    const [claim, pod] = [`data-${name}-0`, `${name}-0`];
    const app = { name, claim, pod, size: '1Gi', acknowledged: new Set<number>() };
    this.apps.set(name, { ...app, ...(from && { from }) });
    this.home.store.create({ kind: 'StatefulSet', metadata: { namespace: shop, name } } as never);
  }
  move(app: App): VolumeMove | undefined {
    return this.home.store.now(volumeMoves, { namespace: shop, name: app.claim });
  }
  claim(app: App): PersistentVolumeClaim | undefined {
    return this.home.claim(shop, app.claim);
  }
  /** As the command does it: a move that is over is deleted first. */
  startMove(app: App, target: string): void {
    const old = this.move(app);
    if (old) {
      if (over.has(old.status?.phase ?? 'Pending')) this.deleteMove(app);
      return;
    }
    this.home.store.create({
      apiVersion: 'isthmus.dev/v1alpha1',
      kind: volumeMoves.kind,
      metadata: { namespace: shop, name: app.claim },
      spec: { target, undoWindowSeconds: 3_600 },
    } as never);
  }
  order(app: App, order: string): void {
    const move = this.move(app);
    if (!move) return;
    const { uid = '' } = move.metadata;
    if (order === 'confirm' && move.status?.phase !== 'Undoable') this.#early.add(uid);
    else this.#early.delete(uid);
    this.home.setSpec(move, { order });
  }
  deleteMove(app: App): void {
    this.home.store.delete(volumeMoves, { namespace: shop, name: app.claim });
  }
  restart(app: App): void {
    this.home.store.delete(pods, { namespace: shop, name: app.pod });
  }
  /** The node does not get to answer; what runs at a provider goes on there. */
  forceDelete(app: App): void {
    const pod = this.home.pod(shop, app.pod);
    if (pod?.spec?.nodeName !== undefined && pod.spec.nodeName !== ownNode)
      this.home.store.delete(pods, { namespace: shop, name: app.pod }, { gracePeriodSeconds: 0 });
  }
  resize(app: App, size: string): void {
    const claim = this.claim(app);
    // An API server takes no growth of a claim that is not bound.
    if (claim?.status?.phase !== 'Bound' || claim.metadata.deletionTimestamp !== undefined) return;
    app.size = size;
    this.home.setSpec(claim, { resources: { requests: { storage: size } } });
  }
  /** Its data was lost with its provider, and is adopted there: the claim is made again, for a node of that provider. */
  remake(app: App, size: string, at?: ProviderName): void {
    app.size = size;
    if (at !== undefined) app.pinned = at;
    this.deleteMove(app);
    this.home.store.delete(persistentVolumeClaims, { namespace: shop, name: app.claim });
    this.restart(app);
  }
  /** The administrator wants its data kept. A volume that a move retains says Retain already: then this changes nothing. */
  retain(app: App): void {
    const volume = this.home.volume(this.claim(app)?.spec?.volumeName);
    const disk = this.#diskBehind(volume?.metadata.name);
    if (!volume || !disk || volume.spec?.persistentVolumeReclaimPolicy !== 'Delete') return;
    this.home.setSpec(volume, { persistentVolumeReclaimPolicy: 'Retain' });
    this.retained.add(volume.metadata.name);
    this.#kept.add(disk);
  }
  breakOff(): void {
    this.#played.copy(true);
  }

  isPeered(name: string): boolean {
    return this.#peered.has(name);
  }
  peer(name: ProviderName): void {
    const { store } = this.#provider(name);
    // What is left of an earlier peering goes first.
    if (this.#peered.has(name) || store.now(namespaces, { name: shopThere })) return;
    this.#peered.add(name);
    store.create(namespace(shopThere, { [label.remoteClusterId]: consumer }));
    const labels = { [label.type]: virtualNodeType, [label.remoteClusterId]: name };
    const status = { conditions: [{ type: 'Ready', status: 'True' }] };
    this.home.store.create({ kind: 'Node', metadata: { name: nodeOf(name), labels }, status } as never);
    this.home.store.create({
      kind: virtualNodes.kind,
      metadata: { namespace: 'liqo', name: nodeOf(name) },
      spec: { clusterID: name, storageClasses: [{ storageClassName: diskClass, default: true }] },
    } as never);
    this.agents.restart(consumer);
  }
  /** By force: the provider takes its namespace down, and what the consumer has of it goes. */
  unpeer(name: ProviderName): void {
    if (!this.#peered.delete(name)) return;
    const { store } = this.#provider(name);
    store.isCut = false;
    for (const pod of this.home.store.all(pods))
      if (pod.spec?.nodeName === nodeOf(name)) this.home.store.delete(pods, refOf(pod), { gracePeriodSeconds: 0 });
    this.home.store.delete(virtualNodes, { namespace: 'liqo', name: nodeOf(name) });
    this.home.store.delete(nodes, { name: nodeOf(name) });
    store.delete(namespaces, { name: shopThere });
    this.agents.restart(consumer);
  }

  // What everything else does.

  #admitPod(given: Pod): Pod {
    const metadata = { ...given.metadata, creationTimestamp: new Date(this.clock.now()).toISOString() };
    const pod = { ...given, metadata };
    const offloading = this.home.store.now(namespaceOffloadings, { namespace: shop, name: 'offloading' });
    if (metadata.namespace !== shop || !offloading) return pod;
    const isMarked = (name: string): boolean =>
      this.home.claim(shop, name)?.metadata.annotations?.[storageAnnotation.moving] !== undefined;
    const moving = claimsOf(pod).some(isMarked) && !this.isBlind;
    this.isBlind = false;
    return jsonPatched(pod, gatePatch(pod, offloading, { movable: true, open: false, moving }) as never);
  }

  play(chance: number): void {
    this.#played.play(chance);
    this.#write();
  }

  /** Every application that runs anywhere writes a line; what it finds must be all that it was ever told is safe. */
  #write(): void {
    for (const { app, disk } of this.#played.appMounts()) {
      const lost = [...app.acknowledged].filter((line) => !disk.lines.has(line));
      if (lost.length > 0) this.#fault(`${app.name} on ${disk.id} misses ${lost.length} acknowledged lines`);
      this.#line += 1;
      disk.lines.add(this.#line);
      app.acknowledged.add(this.#line);
    }
  }

  // What must always hold.

  #fault(what: string): void {
    const phases = [...this.apps.values()].map((app) => `${app.name}: ${this.move(app)?.status?.phase}`);
    if (this.faults.length < 5) this.faults.push(`${what} (${phases.join(', ')})`);
  }

  #onWrite(before: KubeObject, after: KubeObject | undefined): void {
    this.#expectEnd();
    if (before.kind === persistentVolumeClaims.kind)
      this.#expectRoom(before as PersistentVolumeClaim, after as PersistentVolumeClaim | undefined);
    if (before.kind === volumeMoves.kind) this.#onMove(before as VolumeMove, after as VolumeMove | undefined);
    const disks = new Set(this.clusters.flatMap((one) => [...one.disks.values()]));
    const mounts = this.#played.appMounts();
    for (const app of this.apps.values()) {
      const hasAll = ({ lines }: Disk): boolean => [...app.acknowledged].every((line) => lines.has(line));
      if (app.acknowledged.size > 0 && ![...disks].some(hasAll)) this.#fault(`no disk has all lines of ${app.name}`);
      const mounted = new Set(mounts.filter((one) => one.app === app).map(({ disk }) => disk.id));
      if (mounted.size > 1) this.#fault(`${app.name} has ${[...mounted].join(' and ')} mounted`);
    }
    for (const disk of this.#undoable.values())
      if (!disks.has(disk)) this.#fault(`disk ${disk.id} is gone, to which a move can be undone`);
    for (const disk of this.#kept) if (!disks.has(disk)) this.#fault(`disk ${disk.id} is gone, which was to be kept`);
    if (before.kind === persistentVolumes.kind && after === undefined) this.#expectVolume(before);
  }

  /** Agents that answer each other's writes leave nothing else its turn, not even time. */
  #expectEnd(): void {
    const ms = this.clock.now();
    if (this.#writesAt.ms !== ms) this.#writesAt = { ms, count: 0 };
    this.#writesAt.count += 1;
    if (this.#writesAt.count !== mostWritesAtOnce) return;
    this.#fault(`${mostWritesAtOnce} writes in one moment`);
    this.agents.end();
  }

  /** A disk whose PersistentVolume is gone is an orphan without a record. */
  #expectVolume({
    metadata,
    spec,
  }: KubeObject & { readonly spec?: { readonly csi?: { readonly volumeHandle: string } } }): void {
    const id = spec?.csi?.volumeHandle ?? '';
    for (const { disks, name } of this.clusters)
      if (disks.has(id) && metadata.name.startsWith('disk-'))
        this.#fault(`disk ${id} of ${name} has no PersistentVolume`);
  }

  #onMove(before: VolumeMove, after: VolumeMove | undefined): void {
    const { uid = '', name } = before.metadata;
    const [was, status] = [before.status?.phase, after?.status];
    if (status === undefined || after === undefined) return void this.#undoable.delete(uid);
    if (status.phase === was) return;
    this.phases.set(status.phase, (this.phases.get(status.phase) ?? 0) + 1);
    this.#expectFrozen(was, status);
    this.#expectWindow(before, status);
    const left = this.#undoable.get(uid);
    if (ending.has(status.phase)) this.#undoable.delete(uid);
    if (status.phase === 'Keeping' && left) this.#kept.add(left);
    const disk = this.#diskBehind(status.from?.volume);
    if (status.phase === 'Undoable' && disk) this.#undoable.set(uid, disk);
    // An undo without a copy gives up what was written since the switch, as ordered.
    const app = [...this.apps.values()].find(({ claim }) => claim === name);
    const { onFreeze } = this;
    if (status.phase === 'Freezing' && app && onFreeze) {
      this.onFreeze = undefined;
      onFreeze(app);
    }
    const to = this.#diskBehind(status.to?.volume);
    const isGivenUp = was === 'Freezing' && status.phase === 'Switching' && status.withoutCopy;
    if (isGivenUp && app && to) app.acknowledged = new Set(to.lines);
  }

  /** No confirmation from before the switch ends the time for an undo. */
  #expectWindow({ metadata, status: was }: VolumeMove, { phase }: VolumeMoveStatus): void {
    if (was?.phase !== 'Undoable' || phase !== 'Discarding' || !this.#early.has(metadata.uid ?? '')) return;
    if (was.undoUntil === undefined || this.clock.now() < Date.parse(was.undoUntil))
      this.#fault(`move ${metadata.name} is confirmed by an order from before the switch`);
  }

  /** The last copy, and a switch without one, begin when no application has the volume. */
  #expectFrozen(was: string | undefined, { phase, from }: VolumeMoveStatus): void {
    if (was !== 'Freezing' || (phase !== 'FinalCopy' && phase !== 'Switching')) return;
    const disk = this.#diskBehind(from?.volume);
    if (this.#played.appMounts().some((mount) => mount.disk === disk))
      this.#fault(`${phase} begins while an application has ${disk?.id} mounted`);
  }

  /** A claim that is deleted for the switch gets a volume that is as large as it asks for. */
  #expectRoom(before: PersistentVolumeClaim, after: PersistentVolumeClaim | undefined): void {
    if (before.metadata.deletionTimestamp !== undefined || after?.metadata.deletionTimestamp === undefined) return;
    const { namespace = '', name } = before.metadata;
    const status = this.home.store.now(volumeMoves, { namespace, name })?.status;
    if (status?.phase !== 'Switching' || status.way === 'back' || status.gaveUp !== undefined) return;
    if (amountOf(before.spec?.resources?.requests) > amountOf(this.home.volume(status.to?.volume)?.spec?.capacity))
      this.#fault(`claim ${name} asks for more than its next volume has`);
  }

  /** Of a volume of ours. */
  #diskBehind(volume: string | undefined): Disk | undefined {
    const { csi } = this.home.volume(volume)?.spec ?? {};
    const at = csi?.driver === remoteVolumeDriver ? remoteClaimOf(csi.volumeHandle) : undefined;
    if (at) return this.#provider(at.provider).diskOf(at.namespace, at.name);
    return this.home.disks.get(csi?.volumeHandle ?? '');
  }
}

const namespace = (name: string, labels: Readonly<Record<string, string>> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});
