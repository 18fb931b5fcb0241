/**
 * A consumer and two providers in memory with the agents' own controllers of storage, whose every write may be the last of its agent; all else of
 * Kubernetes is played, down to disks with what was written to them. What must always hold is asked after every single write.
 */
import { gatePatch } from '#agent/offloading/consumer/admission/pod.ts';
import { jsonPatched } from '#agent/testing/patched.ts';
import {
  namespaces,
  nodes,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  pods,
} from '#shared/domain/core-kinds.ts';
import { type KubeObject, type Pod, refOf } from '#shared/domain/kube-object.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { storageAnnotation, virtualProvisioner } from '#shared/domain/storage-keys.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { type VolumeMove, volumeMoves } from '#shared/schema/isthmus/volume-move.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import type { Random } from '../memory-cluster.ts';
import { Agents } from './agents.ts';
import { Invariants, over } from './invariants.ts';
import { claimsOf, diskClass, Kubernetes } from './kubernetes.ts';
import { consumer, nodeOf, ownNode, type ProviderName, providerNames, shop, shopThere, virtualClass } from './names.ts';
import { type App, type From, Played } from './played.ts';

export class StorageWorld {
  readonly clock = new ManualClock();
  readonly home: Kubernetes;
  readonly providers: ReadonlyMap<ProviderName, Kubernetes>;
  readonly apps = new Map<string, App>();
  readonly agents: Agents;
  readonly faults: string[] = [];
  /** PersistentVolumes that a person has given the policy Retain. */
  readonly retained = new Set<string>();
  /** The next pod is admitted by a webhook that has read its claim before that was marked as one that moves. */
  isBlind = false;
  /** Happens once, to the application whose freeze begins next. */
  onFreeze: ((app: App) => void) | undefined;
  readonly #played: Played;
  readonly #invariants: Invariants;
  readonly #peered = new Set<string>();
  #line = 0;

  constructor(random: Random) {
    this.home = new Kubernetes(consumer, this.clock, random);
    const guests = { consumer, namespace: shopThere };
    this.providers = new Map(providerNames.map((name) => [name, new Kubernetes(name, this.clock, random, guests)]));
    const fault = (what: string): void => this.#fault(what);
    this.#played = new Played(this.home, this.providers, this.apps, random, fault);
    const clusters = new Map<string, Kubernetes>([[consumer, this.home], ...this.providers]);
    this.agents = new Agents({ clusters, peered: this.#peered, clock: this.clock, random, fault });
    this.home.store.admit(pods.kind, (pod) => this.#admitPod(pod as unknown as Pod) as never);
    this.#invariants = new Invariants({
      home: this.home,
      clusters: this.clusters,
      apps: this.apps,
      played: this.#played,
      clock: this.clock,
      fault,
      onFreeze: (app) => this.#froze(app),
      onStorm: () => this.agents.end(),
    });
    this.#furnish();
    for (const { store } of this.clusters) store.onWrite = (before, after) => this.#invariants.check(before, after);
    for (const name of providerNames) this.peer(name);
    this.agents.start();
  }

  get clusters(): readonly Kubernetes[] {
    return [this.home, ...this.providers.values()];
  }
  /** How many moves entered each phase. */
  get phases(): ReadonlyMap<string, number> {
    return this.#invariants.phases;
  }
  #provider(name: ProviderName): Kubernetes {
    const found = this.providers.get(name);
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
    this.#invariants.ordered(move, order);
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
    const disk = this.#played.diskBehind(volume?.metadata.name);
    if (!volume || !disk || volume.spec?.persistentVolumeReclaimPolicy !== 'Delete') return;
    this.home.setSpec(volume, { persistentVolumeReclaimPolicy: 'Retain' });
    this.retained.add(volume.metadata.name);
    this.#invariants.keep(disk);
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

  #froze(app: App): void {
    const { onFreeze } = this;
    this.onFreeze = undefined;
    onFreeze?.(app);
  }

  #fault(what: string): void {
    const phases = [...this.apps.values()].map((app) => `${app.name}: ${this.move(app)?.status?.phase}`);
    if (this.faults.length < 5) this.faults.push(`${what} (${phases.join(', ')})`);
  }
}

const namespace = (name: string, labels: Readonly<Record<string, string>> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});
