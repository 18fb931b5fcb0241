/** What the consumer's Kubernetes plays besides its controllers of volumes: StatefulSets, the scheduler, virtual kubelets and the pods that copy. */
import { namespaces, nodes, type PersistentVolumeClaim, persistentVolumes, pods } from '#shared/domain/core-kinds.ts';
import { type KubeObject, type Pod, refOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { snapshotGroup } from '#shared/domain/snapshot-kinds.ts';
import {
  type RemoteClaim,
  remoteClaimOf,
  remoteVolumeDriver,
  virtualProvisioner,
} from '#shared/domain/storage-keys.ts';
import type { Random } from '../memory-cluster.ts';
import { claimsOf, type Disk, type Kubernetes, type Mount, selectedNode } from './kubernetes.ts';
import { nodeOf, ownNode, type ProviderName, providerOf, shop, shopThere, virtualClass } from './names.ts';

type Claim = PersistentVolumeClaim;

export type From = { readonly claim: string } | { readonly snapshot: string };

const sourceOf = (from: From) =>
  'claim' in from
    ? { kind: 'PersistentVolumeClaim', name: from.claim }
    : { apiGroup: snapshotGroup, kind: 'VolumeSnapshot', name: from.snapshot };

/** A StatefulSet of one pod with one claim. It writes numbered lines as long as it runs. */
export interface App {
  readonly name: string;
  readonly claim: string;
  readonly pod: string;
  size: string;
  /** Lines that it was told are safe. */
  acknowledged: Set<number>;
  /** Its next claim is for a node of this provider, or for one of the cluster itself. */
  pinned?: ProviderName | 'local';
  /** Its claim begins as a copy of that one, or as that VolumeSnapshot. */
  readonly from?: From;
}

export interface Mounted extends Mount {
  readonly cluster: Kubernetes;
}

const smallest = '1Gi';

export class Played {
  readonly #home: Kubernetes;
  readonly #providers: ReadonlyMap<string, Kubernetes>;
  readonly #apps: ReadonlyMap<string, App>;
  readonly #random: Random;
  readonly #fault: (what: string) => void;
  /** UIDs of pods that have copied and compare now. */
  readonly #copied = new Set<string>();

  constructor(
    home: Kubernetes,
    providers: ReadonlyMap<string, Kubernetes>,
    apps: ReadonlyMap<string, App>,
    random: Random,
    fault: (what: string) => void,
  ) {
    this.#home = home;
    this.#providers = providers;
    this.#apps = apps;
    this.#random = random;
    this.#fault = fault;
  }

  get #clusters(): readonly Kubernetes[] {
    return [this.#home, ...this.#providers.values()];
  }

  /** One round; each part of it happens now with this chance, else later. */
  play(chance: number): void {
    const home = this.#home;
    for (const app of this.#apps.values()) if (home.coin(chance)) this.#statefulSet(app);
    for (const pod of home.store.all(pods)) if (home.coin(chance)) this.#schedule(pod);
    home.play((node) => node === ownNode, chance);
    for (const [name, provider] of this.#providers) {
      if (!provider.store.isCut) this.#virtualKubelet(nodeOf(name), provider, chance);
      provider.play(() => true, chance);
      if (!provider.store.isCut) this.#mirror(nodeOf(name), provider);
    }
    for (const cluster of this.#clusters) cluster.forget();
    if (home.coin(chance)) this.copy(false);
  }

  #statefulSet(app: App): void {
    const { name, claim: claimName, pod: podName } = app;
    const { store } = this.#home;
    const claim = this.#home.claim(shop, claimName);
    const pod = this.#home.pod(shop, podName);
    if (claim === undefined) {
      // Missing claims of a pod that waits are made again, as StatefulSets do.
      if (pod !== undefined && pod.status?.phase !== 'Pending') return;
      app.size = app.pinned === undefined ? smallest : app.size;
      const resources = { requests: { storage: app.size } };
      const source = app.from && sourceOf(app.from);
      const dataSource = source === undefined ? {} : { dataSource: source, dataSourceRef: source };
      const spec = { storageClassName: virtualClass, accessModes: ['ReadWriteOnce'], resources, ...dataSource };
      const metadata = { namespace: shop, name: claimName, labels: { app: name } };
      store.create({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec } as never);
      return;
    }
    if (pod !== undefined || claim.metadata.deletionTimestamp !== undefined) return;
    const set = store.now({ kind: 'StatefulSet' } as never, { namespace: shop, name }) as KubeObject | undefined;
    const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name, uid: set?.metadata.uid, controller: true };
    store.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: shop, name: podName, labels: { app: name }, ownerReferences: [owner] },
      spec: {
        containers: [{ name: 'app', image: 'app:1' }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
      },
    } as never);
  }

  #fits(node: string, pod: Pod, claim: Claim): boolean {
    const at = providerOf(node);
    const volume = this.#home.volume(claim.spec?.volumeName);
    const ofPod = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
    const ofVolume = volume?.spec?.nodeAffinity?.required?.nodeSelectorTerms;
    return [...(ofPod ?? []), ...(ofVolume ?? [])].every(({ matchExpressions = [] }) =>
      matchExpressions.every(({ key, operator, values }) => {
        if (key === label.type) return operator !== 'DoesNotExist' || at === undefined;
        return key !== label.remoteClusterId || (at !== undefined && (values ?? []).includes(at));
      }),
    );
  }

  #schedule(pod: Pod): void {
    const { store } = this.#home;
    const { deletionTimestamp, namespace } = pod.metadata;
    if (namespace !== shop || pod.spec?.nodeName || pod.spec?.schedulingGates?.length || deletionTimestamp) return;
    const claim = this.#home.claim(shop, claimsOf(pod)[0] ?? '');
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return;
    const isOpen = claim.spec?.volumeName === undefined;
    const pinned = [...this.#apps.values()].find(({ claim: name }) => name === claim.metadata.name)?.pinned;
    const only = pinned === 'local' ? ownNode : pinned && nodeOf(pinned);
    const fitting = store
      .all(nodes)
      .map(({ metadata }) => metadata.name)
      .filter((node) => !this.#providers.get(providerOf(node) ?? '')?.store.isCut)
      .filter((node) => this.#fits(node, pod, claim) && (!isOpen || only === undefined || node === only));
    const node = fitting[Math.floor(this.#random() * fitting.length)];
    if (node === undefined) return;
    if (claim.status?.phase === 'Bound') {
      store.bind(pod, node);
      return;
    }
    const isReserved = store
      .all(persistentVolumes)
      .some(({ spec }) => spec?.claimRef?.name === claim.metadata.name && spec.claimRef.uid === undefined);
    if (!isOpen || isReserved || claim.metadata.annotations?.[selectedNode] !== undefined) return;
    const provisioner = { 'volume.kubernetes.io/storage-provisioner': virtualProvisioner };
    this.#home.annotate(claim, { [selectedNode]: node, ...provisioner });
  }

  #handleOf(pod: Pod): RemoteClaim | undefined {
    const { csi } = this.#home.volume(this.#home.claim(shop, claimsOf(pod)[0] ?? '')?.spec?.volumeName)?.spec ?? {};
    return csi?.driver === remoteVolumeDriver ? remoteClaimOf(csi.volumeHandle) : undefined;
  }

  /** Pods at a provider: they use the claim that the volume named when they were made. */
  #virtualKubelet(node: string, { store }: Kubernetes, chance: number): void {
    const mine = this.#home.store.all(pods).filter(({ spec }) => spec?.nodeName === node);
    for (const pod of mine) {
      const twin = store.now(pods, { namespace: shopThere, name: pod.metadata.name });
      if (!this.#home.coin(chance)) continue;
      const isTwin = twin?.metadata.annotations?.uid === pod.metadata.uid;
      const isGoing = pod.metadata.deletionTimestamp !== undefined;
      if (twin && (!isTwin || isGoing)) store.delete(pods, refOf(twin));
      else if (!twin && isGoing) this.#home.store.delete(pods, refOf(pod), { gracePeriodSeconds: 0 });
      else if (!twin && pod.status?.phase === 'Pending') this.#createTwin(pod, node, store);
    }
    for (const twin of store.all(pods))
      if (!mine.some(({ metadata }) => metadata.name === twin.metadata.name) && this.#home.coin(chance))
        store.delete(pods, refOf(twin));
  }

  #createTwin(pod: Pod, node: string, store: Kubernetes['store']): void {
    const at = this.#handleOf(pod);
    const home = store.now(namespaces, { name: shopThere });
    if (at === undefined || nodeOf(at.provider) !== node || !home || home.metadata.deletionTimestamp) return;
    const { name, labels = {}, uid = '' } = pod.metadata;
    const metadata = { namespace: at.namespace, name, labels, annotations: { uid } };
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: at.name } }];
    store.create({ kind: 'Pod', metadata, spec: { nodeName: 'worker', volumes } } as never);
  }

  #mirror(node: string, { store }: Kubernetes): void {
    for (const pod of this.#home.store.all(pods)) {
      if (pod.spec?.nodeName !== node || pod.status?.phase !== 'Pending') continue;
      const twin = store.now(pods, { namespace: shopThere, name: pod.metadata.name });
      if (twin?.status?.phase === 'Running' && twin.metadata.annotations?.uid === pod.metadata.uid)
        this.#home.setStatus(pod, { phase: 'Running', conditions: twin.status.conditions });
    }
  }

  mounts(): readonly Mounted[] {
    return this.#clusters.flatMap((cluster) => [...cluster.mounts.values()].map((mount) => ({ ...mount, cluster })));
  }
  /** Those of applications. */
  appMounts(): readonly (Mounted & { readonly app: App })[] {
    return this.mounts().flatMap((mount) => {
      const app = this.#apps.get(mount.labels.app ?? '');
      return app ? [{ ...mount, app }] : [];
    });
  }

  /** Of a volume of ours. */
  diskBehind(volume: string | undefined): Disk | undefined {
    const { csi } = this.#home.volume(volume)?.spec ?? {};
    const at = csi?.driver === remoteVolumeDriver ? remoteClaimOf(csi.volumeHandle) : undefined;
    if (!at) return this.#home.disks.get(csi?.volumeHandle ?? '');
    const provider = this.#providers.get(at.provider);
    if (!provider) throw new Error(`no provider ${at.provider}`);
    return provider.diskOf(at.namespace, at.name);
  }

  /** Pods that fetch go a step further: the copy, then for the last pass the comparison. `fails`: they break off. */
  copy(fails: boolean): void {
    const all = this.mounts();
    for (const fetch of all.filter(({ pod }) => /-(live|final)$/.test(pod))) {
      const pod = this.#home.pod(shop, fetch.pod);
      if (pod?.status?.phase !== 'Running') continue;
      const uid = pod.metadata.uid ?? '';
      const send = all.find((one) => one.pod === fetch.pod.replace(/-(live|final)$/, '-send'));
      const isCut = [send, fetch].some((one) => one?.cluster.store.isCut);
      if (!send || isCut || fails) this.#ended(pod, { ok: false, error: 'it broke off' });
      else if (!this.#copied.has(uid)) {
        if (this.appMounts().some(({ disk }) => disk === fetch.disk))
          this.#fault(`a copy is written to ${fetch.disk.id}, which an application has mounted`);
        this.#copied.add(uid);
        fetch.disk.lines.clear();
        for (const line of send.disk.lines) fetch.disk.lines.add(line);
      } else if (fetch.pod.endsWith('-live')) this.#ended(pod, { ok: true, passes: 1 });
      else if (equal(send.disk.lines, fetch.disk.lines))
        this.#ended(pod, { ok: true, verified: { files: 1, bytes: fetch.disk.lines.size } });
      else this.#ended(pod, { ok: false, error: 'the checksums differ' });
    }
  }

  #ended(pod: Pod, result: { readonly ok: boolean } & Readonly<Record<string, unknown>>): void {
    const terminated = { exitCode: result.ok ? 0 : 1, message: JSON.stringify(result) };
    const phase = result.ok ? 'Succeeded' : 'Failed';
    this.#home.setStatus(pod, { phase, containerStatuses: [{ state: { terminated } }] });
    for (const { mounts } of this.#clusters)
      for (const [uid, mount] of mounts) if (mount.pod === pod.metadata.name) mounts.delete(uid);
  }
}

const equal = (a: ReadonlySet<number>, b: ReadonlySet<number>): boolean =>
  a.size === b.size && [...a].every((one) => b.has(one));
