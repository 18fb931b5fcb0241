/** A consumer and a provider in memory, with the agents' own controllers on both sides; schedulers, kubelets and the copying of NamespaceMaps are played. */
import { gatePatch, podPatch } from '#agent/offloading/consumer/admission/pod.ts';
import { isOutgoing, mappingOf } from '#agent/offloading/consumer/namespaces/mappings.ts';
import { ensureNamespaceMap } from '#agent/offloading/consumer/namespaces/namespace-map.ts';
import { pruneLocalPod } from '#agent/offloading/consumer/pods/cache-transforms.ts';
import { ProviderSession } from '#agent/offloading/consumer/virtual-node/provider-session.ts';
import { createOffloadingControllers } from '#agent/offloading/offloading.ts';
import { decideCopy } from '#agent/peering/replication/decide.ts';
import type { ReflectionOptions } from '#agent/reflection/engine/options.ts';
import { sharedReflection } from '#agent/reflection/shared-reflection.ts';
import { jsonPatched } from '#agent/testing/patched.ts';
import type { Cluster } from '#kube/model/types.ts';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import { configMaps, namespaces, nodes, pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod } from '#shared/domain/kube-object.ts';
import { label, virtualNodeTaint, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { type NamespaceMap, namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { type NamespaceOffloading, namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { MemoryCluster, type Random } from './memory-cluster.ts';

const nodeName = 'vn1';
const localNode = 'own';
const tenant = { here: 'liqo-tenant-prov', there: 'liqo-tenant-cons' } as const;
const consumer = 'cons';
const provider = 'prov';
/** How many unfinished ShadowPods the provider lets in at a time. */
const quota = 4;

const off = { workers: 0, type: 'DenyList' } as const;
const options: ReflectionOptions = {
  kinds: {
    ...{ service: off, endpointslice: off, ingress: off, secret: off, serviceaccount: off, event: off },
    configmap: { workers: 1, type: 'DenyList' },
  },
  labelsNotReflected: [],
  annotationsNotReflected: [],
  ingressClass: undefined,
  loadBalancerClass: undefined,
  apiSupport: false,
  addresses: true,
} as ReflectionOptions;

interface Running {
  stop(): Promise<void>;
}

export class OrderingClusters {
  readonly clock = new ManualClock();
  readonly here: MemoryCluster;
  readonly there: MemoryCluster;
  readonly #random: Random;
  #consumer: Running | undefined;
  #provider: Running | undefined;
  #virtualNode: VirtualNode | undefined;

  constructor(random: Random) {
    this.#random = random;
    this.here = new MemoryCluster(this.clock, random);
    this.there = new MemoryCluster(this.clock, random);
    this.here.admit('Pod', (object) => this.#admitPod(object as unknown as Pod) as never);
    this.there.admit('ShadowPod', (object) => this.#admitShadowPod(object as never) as never);
    const ofTenant = (id: string) => ({ [label.tenantNamespace]: 'true', [label.remoteClusterId]: id });
    this.here.create(namespace(tenant.here, ofTenant(provider)));
    this.there.create(namespace(tenant.there, ofTenant(consumer)));
  }

  /** What the webhook makes of a pod, from what is and not from what a cache shows: it reads the offloading when it does not know it. */
  #admitPod(pod: Pod): Pod {
    const home = this.here.now(namespaces, { name: pod.metadata.namespace ?? '' });
    if (home?.metadata.labels?.[label.schedulingEnabled] !== 'true') return pod;
    const offloading = this.here.now(namespaceOffloadings, { namespace: home.metadata.name, name: 'offloading' });
    if (!offloading) throw new AppError('kube_forbidden', `namespace ${home.metadata.name} is not offloaded`);
    const patch = [...podPatch(pod, offloading.spec), ...gatePatch(pod, offloading)];
    return jsonPatched(pod, patch as never);
  }

  #admitShadowPod(shadow: KubeObject): KubeObject {
    const open = this.there
      .all(shadowPods)
      .filter(({ status }) => !['Succeeded', 'Failed'].includes(status?.phase ?? ''));
    if (open.length >= quota) throw new AppError('kube_forbidden', 'the quota is exhausted');
    return shadow;
  }

  /** The consumer's agent, its virtual node included. */
  async startConsumer(): Promise<void> {
    if (this.#consumer) return;
    const stop = new AbortController();
    const cluster = this.here.open('own', sharedByMany(stop.signal)) as Cluster;
    const deps = { cluster, clusterId: consumer, clock: this.clock, log: silentLog, random: this.#random };
    const running = createOffloadingControllers(deps).map((controller) => controller.run(stop.signal));
    const kubelet = this.#virtualNode ? this.#startKubelet(cluster, this.#virtualNode, stop) : undefined;
    this.#consumer = {
      async stop() {
        stop.abort();
        await Promise.all([...running, kubelet]);
      },
    };
  }

  async #startKubelet(cluster: Cluster, virtualNode: VirtualNode, end: AbortController): Promise<void> {
    const { signal } = end;
    const byNamespace = { namespace: (pod: Pod): readonly string[] => [pod.metadata.namespace ?? ''] };
    const bound = { fieldSelector: `spec.nodeName=${nodeName}`, transform: pruneLocalPod, indexes: byNamespace };
    const localPods = cluster.caches.scoped(pods, bound, signal);
    const maps = cluster.caches.cache(namespaceMaps);
    const ownNodes = cluster.caches.cache(nodes, { labelSelector: `${label.type}=${virtualNodeType}` });
    const shared = sharedReflection({
      cluster,
      systemNamespace: 'liqo',
      nodes: ownNodes,
      pod: (_, namespace, name) => localPods.get({ namespace, name }),
    });
    const map = (): NamespaceMap | undefined => maps.list().find((one) => isOutgoing(one, tenant.here, provider));
    const link = new AbortController();
    signal.addEventListener('abort', () => link.abort(), { once: true });
    const session = new ProviderSession(
      {
        local: cluster,
        provider: this.there.open('peer', sharedByMany(link.signal)) as never,
        consumer,
        providerId: provider,
        nodeName,
        localPods,
        mapping: (namespace) => (maps.isSynced() ? mappingOf(map(), namespace) : undefined),
        nodeReady: () => !this.there.isCut,
        context: () => ({
          consumer,
          provider,
          nodeName,
          hostIp: '10.1.1.1',
          remoteRanges: [{ real: '10.0.0.0/8', view: '10.0.0.0/8' }],
          isLinked: true,
        }),
        clock: this.clock,
        log: silentLog,
        onRemoteChange: () => undefined,
        shared,
        options: () => options,
      },
      link,
    );
    this.#onHeal = () => session.catchUp();
    try {
      await Promise.all([
        localPods.synced(signal),
        maps.synced(signal),
        ownNodes.synced(signal),
        shared.synced(signal),
      ]);
      while (!(await ensureNamespaceMap(virtualNode, maps, cluster.api, signal))) await this.clock.sleep(1_000, signal);
    } catch {
      return;
    }
    session.start(map());
    maps.subscribe(({ before, after }) => {
      if (!isOutgoing((after ?? before) as NamespaceMap, tenant.here, provider)) return;
      session.useMap(before, after);
    });
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await session.end();
  }
  #onHeal: () => void = () => undefined;

  async stopConsumer(): Promise<void> {
    await this.#consumer?.stop();
    this.#consumer = undefined;
  }

  async startProvider(): Promise<void> {
    if (this.#provider) return;
    const stop = new AbortController();
    const cluster = this.there.open('own', sharedByMany(stop.signal)) as Cluster;
    const deps = { cluster, clusterId: provider, clock: this.clock, log: silentLog, random: this.#random };
    const running = createOffloadingControllers(deps).map((controller) => controller.run(stop.signal));
    this.#provider = {
      async stop() {
        stop.abort();
        await Promise.all(running);
      },
    };
  }

  async stopProvider(): Promise<void> {
    await this.#provider?.stop();
    this.#provider = undefined;
  }

  /** The peering is done: the virtual node and its Node are there, and the agent, if it runs, begins to keep it. */
  async addVirtualNode(): Promise<void> {
    if (this.#virtualNode) return;
    const labels = { [label.type]: virtualNodeType, [label.remoteClusterId]: provider };
    this.#virtualNode = this.here.create({
      apiVersion: 'offloading.liqo.io/v1beta1',
      kind: 'VirtualNode',
      metadata: { namespace: tenant.here, name: nodeName },
      spec: { clusterID: provider },
    } as never) as unknown as VirtualNode;
    this.here.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, labels } });
    if (!this.#consumer) return;
    await this.stopConsumer();
    await this.startConsumer();
  }

  cut(): void {
    this.there.isCut = true;
  }

  heal(): void {
    if (!this.there.isCut) return;
    this.there.isCut = false;
    this.#onHeal();
  }

  /** One turn of everything that is played, on both sides. */
  play(): void {
    this.#schedule();
    this.#replicate();
    this.here.kubelets(
      (node) => node === localNode,
      () => true,
    );
    this.there.kubelets(
      () => true,
      (pod) => this.#settingsAreThere(pod),
    );
    this.here.collect();
    this.there.collect();
  }

  #settingsAreThere({ metadata, spec }: Pod): boolean {
    const { namespace = '' } = metadata;
    const wanted =
      spec?.volumes?.flatMap(({ configMap }) => (configMap?.name === undefined ? [] : [configMap.name])) ?? [];
    return wanted.every((name) => this.there.now(configMaps, { namespace, name }) !== undefined);
  }

  #schedule(): void {
    for (const pod of this.here.all(pods)) {
      if (pod.spec?.nodeName || pod.spec?.schedulingGates?.length || pod.metadata.deletionTimestamp) continue;
      const mayBeRemote = pod.spec?.tolerations?.some(({ key }) => key === virtualNodeTaint.key);
      const mustBeRemote = pod.spec?.affinity?.nodeAffinity !== undefined;
      if (mayBeRemote && this.here.now(nodes, { name: nodeName })) this.here.bind(pod, nodeName);
      else if (!mustBeRemote) this.here.bind(pod, localNode);
    }
  }

  /** The replicator's decisions, without its connections. */
  #replicate(): void {
    if (this.there.isCut) return;
    for (const original of this.here.all(namespaceMaps)) {
      if (!isOutgoing(original, tenant.here, provider)) continue;
      const ref = { namespace: tenant.there, name: original.metadata.name };
      const copy = this.there.now(namespaceMaps, ref);
      const step = decideCopy(original, copy, consumer, tenant.there);
      if (step.do === 'create') this.there.create(step.replica as never);
      else if (step.do === 'correct') this.there.replaceSpec(step.replica as never);
      if (copy?.status && JSON.stringify(copy.status) !== JSON.stringify(original.status))
        this.here.setStatus(original, copy.status);
    }
  }

  /** Runs every agent until its queue is empty, without letting time pass. */
  async breathe(turns = 3): Promise<void> {
    for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Delivers `n` watch events to agents, in a drawn order. */
  async deliver(n: number): Promise<void> {
    for (let i = 0; i < n; i++) {
      if (!this.here.isQuiet && (this.there.isQuiet || this.#random() < 0.5)) this.here.deliverOne();
      else this.there.deliverOne();
      await this.breathe();
    }
  }

  /** Everything reaches everybody, all that is played is played, and time passes; until `isDone`, or for `forMs`. Returns how long it took. */
  async settle(isDone: () => boolean, forMs: number): Promise<number> {
    const began = this.clock.now();
    for (;;) {
      for (let round = 0; round < 6; round++) {
        this.play();
        await this.breathe();
        while (this.here.deliverOne() || this.there.deliverOne()) await this.breathe(1);
        await this.breathe();
      }
      const tookMs = this.clock.now() - began;
      if (isDone() || tookMs >= forMs) return tookMs;
      this.clock.advance(500);
      await this.breathe();
    }
  }

  async end(): Promise<void> {
    await this.stopConsumer();
    await this.stopProvider();
  }
}

export const namespace = (name: string, labels: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});

export const offloading = (namespace: string, strategy: 'Remote' | 'LocalAndRemote'): NamespaceOffloading =>
  ({
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'NamespaceOffloading',
    metadata: { namespace, name: 'offloading' },
    spec: {
      namespaceMappingStrategy: 'DefaultName',
      podOffloadingStrategy: strategy,
      clusterSelector: { nodeSelectorTerms: [] },
    },
  }) as unknown as NamespaceOffloading;
