/**
 * One virtual node at work: its Node, its pods, its kubelet endpoint. Runs until stopped; what it needs and what it has reached is read from
 * `state()`, and every change of that is announced, so that the VirtualNode controller never polls.
 */
import { configMaps, pods } from '#shared/domain/core-kinds.ts';
import { type ConfigMap, keyOf, type Node, type Pod } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { Log } from '#shared/ports/log.ts';
import { type NamespaceMap, namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import type { OffloadingPatch, VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import type { Mapping } from '../controllers/offloaded-pod/decide.ts';
import { leanLocalPod } from '../controllers/offloaded-pod/prune.ts';
import { isReady, type NetworkState, type NodeInput } from '../forge/node.ts';
import { sameContent } from '../forge/same-content.ts';
import type { Cache, Cluster } from '../kube/types.ts';
import type { ReflectionOptions } from '../reflection/options.ts';
import type { SharedReflection } from '../reflection/shared-reflection.ts';
import { authenticationConfig, clientCaOf, type NodeAccess } from './caller.ts';
import { KubeletEndpoint, preferredPort, type Target } from './endpoint.ts';
import { Identity } from './identity.ts';
import { createLink, type Link } from './link.ts';
import { linkVerdict } from './link-verdict.ts';
import { isOutgoing, mappingOf } from './mappings.ts';
import { NodeKeeper } from './node-keeper.ts';
import type { ConnectProvider } from './peer.ts';
import { ProviderHealth } from './provider-health.ts';
import { ProviderSession } from './provider-session.ts';
import { createProviderState, type ProviderState } from './provider-state.ts';
import type { ReflectionCounters } from './reflection-counters.ts';
import { keepCertificate, selfSigned } from './serving-certificate.ts';
import { usagePagesOf } from './usage-pages.ts';

export interface VirtualKubeletDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly ids: Ids;
  /** Address under which the API server reaches this process. */
  readonly podIp: string;
  readonly kubeletPortBase: number;
  readonly connectPeer: ConnectProvider;
  readonly access: NodeAccess;
  /** Every virtual Node of this cluster. */
  readonly nodes: Cache<Node>;
  readonly counters?: ReflectionCounters;
  readonly reflection: SharedReflection;
}

export interface KubeletState {
  /** Why there is no working connection to the provider; undefined when there is one. */
  readonly problem: string | undefined;
  readonly connected: boolean;
  /** The kubeconfig Secret is there. */
  readonly hasIdentity: boolean;
  readonly node: 'wanted' | 'taken' | 'unwanted';
  readonly nodeReady: boolean;
}

/** `pods`: of this node, here or at the provider. `state`: what `state()` says. */
export type KubeletChange = 'state' | 'pods';

/** After an outage of so long, everything is listed anew instead of when each watch has waited its turn. */
const outageWorthMs = 5_000;
const byNamespace = { namespace: (pod: Pod): readonly string[] => [pod.metadata.namespace ?? ''] };

export class VirtualKubelet {
  readonly localPods: Cache<Pod>;
  readonly #deps: VirtualKubeletDeps;
  readonly #onChange: (what: KubeletChange) => void;
  readonly #stop = new AbortController();
  readonly #maps: Cache<NamespaceMap>;
  readonly #clientCa: Cache<ConfigMap>;
  readonly #link: Link;
  readonly #providerState: ProviderState;
  readonly #health: ProviderHealth;
  readonly #keeper: NodeKeeper;
  readonly #endpoint: KubeletEndpoint;
  readonly #log: Log;
  readonly #running: Promise<unknown>[] = [];
  readonly #unsubscribes: (() => void)[] = [];
  #virtualNode: VirtualNode;
  #options: ReflectionOptions;
  readonly #identity: Identity;
  #kubeconfig: string | undefined;
  #session: ProviderSession | undefined;
  /** Replacements of the session happen one after the other. */
  #connecting: Promise<void> = Promise.resolve();
  #connectProblem: string | undefined;
  #nodeWanted = true;
  #nodeTaken = false;
  #linkDownSince = Number.NEGATIVE_INFINITY;

  constructor(deps: VirtualKubeletDeps, virtualNode: VirtualNode, onChange: (what: KubeletChange) => void) {
    const { cluster, clock } = deps;
    const { name } = virtualNode.metadata;
    this.#deps = deps;
    this.#onChange = onChange;
    this.#virtualNode = virtualNode;
    this.#options = deps.reflection.options(virtualNode);
    this.#log = deps.log.with({ node: name });
    const bound = { fieldSelector: `spec.nodeName=${name}`, transform: leanLocalPod, indexes: byNamespace };
    this.localPods = cluster.caches.scoped(pods, bound, this.#stop.signal);
    this.#maps = cluster.caches.cache(namespaceMaps);
    this.#link = createLink(cluster.caches, () => this.#virtualNode, {
      state: () => this.#linkChanged(),
      ranges: () => this.#lookAtAllPods(),
    });
    this.#providerState = createProviderState(
      cluster.caches,
      () => this.#virtualNode,
      () => this.#keeper.look(),
    );
    this.#clientCa = cluster.caches.cache(configMaps, {
      namespace: authenticationConfig.namespace,
      fieldSelector: `metadata.name=${authenticationConfig.name}`,
    });
    this.#identity = new Identity(
      cluster.caches,
      (kubeconfig) => this.#useKubeconfig(kubeconfig),
      () => this.#onChange('state'),
      this.#stop.signal,
    );
    this.#health = new ProviderHealth({
      clock,
      api: () => this.#session?.provider.api,
      onLook: (changed, outageMs) => this.#looked(changed, outageMs),
      isAwaited: () => this.#network() !== this.#link.state(),
    });
    this.#keeper = new NodeKeeper({
      api: cluster.api,
      nodes: deps.nodes,
      name,
      input: () => this.#nodeInput(),
      onTaken: (taken) => this.#taken(taken),
      clock,
      log: this.#log,
    });
    const usage = usagePagesOf(name, deps, this.localPods, () => this.#session);
    this.#endpoint = new KubeletEndpoint(
      {
        nodeName: name,
        access: deps.access,
        target: (namespace, pod) => this.#target(namespace, pod),
        podList: (running, signal) => this.#podList(running, signal),
        usage: (page, signal) => usage.page(page, signal),
        log: this.#log,
      },
      selfSigned(this.#servingSubject(), deps),
      undefined,
    );
  }

  #metrics() {
    const { metadata, spec } = this.#virtualNode;
    const metrics = this.#deps.counters?.of(metadata.name, spec.clusterID);
    return metrics ? { metrics } : {};
  }

  #servingSubject() {
    return { nodeName: this.#virtualNode.metadata.name, addresses: [this.#deps.podIp] };
  }

  /** Resolves when the endpoint listens; everything else comes as it comes. */
  async start(): Promise<void> {
    const { podIp, kubeletPortBase, nodes } = this.#deps;
    const { name } = this.#virtualNode.metadata;
    const { signal } = this.#stop;
    this.#unsubscribes.push(
      this.#maps.subscribe(({ before, after }) => this.#mapChanged(before, after)),
      this.#clientCa.subscribe(({ after }) => this.#endpoint.useClientCa(clientCaOf(after))),
      nodes.subscribe(({ before, after }) => this.#nodeChanged(before, after)),
      this.#link.follow(),
      this.#providerState.follow(),
      this.localPods.subscribe(() => this.#onChange('pods')),
      this.#deps.reflection.follow(() => this.#useOptions()),
    );
    await this.#endpoint.listen(podIp, preferredPort(kubeletPortBase, name), 1_000);
    this.update(this.#virtualNode);
    const work = {
      health: this.#health.run(signal),
      node: this.#keeper.run(signal),
      certificate: keepCertificate(
        this.#servingSubject(),
        { ...this.#deps.cluster, ...this.#deps },
        (pair) => this.#endpoint.useCertificate(pair),
        signal,
      ),
    };
    for (const [what, running] of Object.entries(work)) {
      const ended = (error: unknown): void => {
        if (!signal.aborted) this.#log.error('work for a virtual node has ended', error, { what });
      };
      this.#running.push(running.catch(ended));
    }
    this.#log.info('virtual node started', { port: this.#endpoint.port });
  }

  update(virtualNode: VirtualNode): void {
    const before = this.#virtualNode;
    this.#virtualNode = virtualNode;
    this.#identity.follow(virtualNode.metadata.namespace ?? '', virtualNode.spec.kubeconfigSecretRef?.name);
    this.#keeper.look();
    if (!sameContent(before.spec.offloadingPatch, virtualNode.spec.offloadingPatch)) this.#lookAtAllPods();
    this.#useOptions();
  }

  #useOptions(): void {
    const before = this.#options;
    this.#options = this.#deps.reflection.options(this.#virtualNode);
    if (sameContent(before, this.#options)) return;
    this.#session?.useOptions();
    this.#lookAtAllPods();
  }

  /** From now on the Node is not kept; whoever says so removes it. */
  releaseNode(): void {
    this.#nodeWanted = false;
  }

  wantNode(): void {
    if (this.#nodeWanted) return;
    this.#nodeWanted = true;
    this.#keeper.look();
  }

  state(): KubeletState {
    const { answers, problem } = this.#health.current;
    const { name } = this.#virtualNode.metadata;
    return {
      connected: answers,
      problem: this.#connectProblem ?? (answers ? undefined : problem),
      hasIdentity: this.#identity.isPresent(),
      node: !this.#nodeWanted ? 'unwanted' : this.#nodeTaken ? 'taken' : 'wanted',
      nodeReady: !this.#nodeTaken && isReady(this.#deps.nodes.get({ name })),
    };
  }

  /** Resolves when all that `state()` and `localPods` say is knowledge and not ignorance. */
  async informed(signal: AbortSignal): Promise<void> {
    await Promise.all([this.localPods.synced(signal), this.#maps.synced(signal), this.#identity.synced(signal)]);
    await this.#connecting;
  }

  /** What is left of this node at the provider; undefined while that is not known. */
  left(): ReturnType<ProviderSession['left']> {
    return this.#session?.left();
  }

  get port(): number {
    return this.#endpoint.port;
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#stop.abort();
    await this.#endpoint.close();
    await this.#connecting;
    await this.#session?.end();
    await Promise.allSettled(this.#running);
    this.#deps.counters?.forget(this.#virtualNode.metadata.name);
    this.#log.info('virtual node stopped');
  }

  #useKubeconfig(kubeconfig: string): void {
    if (kubeconfig === this.#kubeconfig) return;
    this.#kubeconfig = kubeconfig;
    this.#connecting = this.#connecting
      .then(() => this.#connect(kubeconfig))
      .catch((error: unknown) => {
        this.#connectProblem = error instanceof Error ? error.message : String(error);
        this.#log.warn('no connection to the provider', { error: this.#connectProblem });
        this.#onChange('state');
      });
  }

  async #connect(kubeconfig: string): Promise<void> {
    if (this.#stop.signal.aborted || kubeconfig !== this.#kubeconfig) return;
    const stop = new AbortController();
    this.#stop.signal.addEventListener('abort', () => stop.abort(), { once: true, signal: stop.signal });
    const provider = await this.#deps.connectPeer(kubeconfig, stop.signal);
    const old = this.#session;
    await old?.end();
    const { cluster, clusterId, clock } = this.#deps;
    this.#session = new ProviderSession(
      {
        local: cluster,
        provider,
        consumer: clusterId,
        providerId: this.#virtualNode.spec.clusterID,
        nodeName: this.#virtualNode.metadata.name,
        localPods: this.localPods,
        mapping: (namespace) => this.#mapping(namespace),
        nodeReady: () => this.#podsMayServe(),
        context: () => ({
          consumer: clusterId,
          provider: this.#virtualNode.spec.clusterID,
          nodeName: this.#virtualNode.metadata.name,
          patch: this.#patch(),
          home: this.#deps.reflection.home(this.#virtualNode.spec.clusterID, this.#options),
          hostIp: this.#deps.podIp,
          remoteRanges: this.#link.remoteRanges(),
        }),
        clock,
        log: this.#log,
        ...this.#metrics(),
        onRemoteChange: () => this.#onChange('pods'),
        shared: this.#deps.reflection,
        options: () => this.#options,
      },
      stop,
    );
    this.#connectProblem = undefined;
    const { reflection } = this.#deps;
    Promise.all([this.#maps, this.#link, reflection].map((known) => known.synced(stop.signal))).then(
      () => this.#session?.start(this.#map()),
      () => undefined,
    );
    this.#health.again();
  }

  /** What the options say about keys counts for pods too. */
  #patch(): OffloadingPatch {
    const { labelsNotReflected, annotationsNotReflected } = this.#options;
    return {
      ...this.#virtualNode.spec.offloadingPatch,
      labelsNotReflected: [...labelsNotReflected],
      annotationsNotReflected: [...annotationsNotReflected],
    };
  }

  /** A Node that is not there yet (or not wanted) marks no pod unavailable. */
  #podsMayServe(): boolean {
    const node = this.#deps.nodes.get({ name: this.#virtualNode.metadata.name });
    return !node || this.#nodeTaken || isReady(node);
  }

  #map(): NamespaceMap | undefined {
    const { namespace = '' } = this.#virtualNode.metadata;
    return this.#maps.list().find((map) => isOutgoing(map, namespace, this.#virtualNode.spec.clusterID));
  }

  #mapping(namespace: string): Mapping | undefined {
    return this.#maps.isSynced() ? mappingOf(this.#map(), namespace) : undefined;
  }

  #mapChanged(before: NamespaceMap | undefined, after: NamespaceMap | undefined): void {
    const { namespace = '' } = this.#virtualNode.metadata;
    const map = after ?? before;
    if (!map || !isOutgoing(map, namespace, this.#virtualNode.spec.clusterID)) return;
    this.#session?.useMap(after);
    for (const local of new Set(this.localPods.list().map((pod) => pod.metadata.namespace ?? ''))) {
      if (!sameContent(mappingOf(before, local), mappingOf(after, local))) this.#session?.lookAtNamespace(local);
    }
  }

  #nodeChanged(before: Node | undefined, after: Node | undefined): void {
    if ((after ?? before)?.metadata.name !== this.#virtualNode.metadata.name) return;
    if (isReady(before) === isReady(after) && before && after) return;
    this.#lookAtAllPods();
    this.#onChange('state');
  }

  #lookAtAllPods(): void {
    for (const pod of this.localPods.list()) this.#session?.look(keyOf(pod));
  }

  #linkChanged(): void {
    if (this.#link.state() === 'down') {
      this.#linkDownSince = this.#deps.clock.now();
      this.#health.again();
    }
    this.#keeper.look();
  }

  #network(): NetworkState {
    return linkVerdict({
      network: this.#link.state(),
      downSince: this.#linkDownSince,
      nodeReady: this.state().nodeReady,
      answered: this.#health.answered,
    });
  }

  #looked(changed: boolean, outageMs: number): void {
    if (outageMs >= outageWorthMs) this.#session?.catchUp();
    if (changed || this.#link.state() === 'down') this.#keeper.look();
    if (changed) this.#onChange('state');
    if (this.#health.current.answers) void this.#keeper.renewLease(this.#stop.signal);
  }

  #nodeInput(): NodeInput | undefined {
    const { answers, version } = this.#health.current;
    const network = this.#network();
    if (!this.#nodeWanted || !answers || network === 'unknown') return undefined;
    return {
      virtualNode: this.#virtualNode,
      hostIp: this.#deps.podIp,
      port: this.#endpoint.port,
      version: version ?? '',
      network,
      provider: this.#providerState.current(),
    };
  }

  #taken(taken: boolean): void {
    if (taken !== this.#nodeTaken) this.#onChange('state');
    this.#nodeTaken = taken;
  }

  #target(namespace: string, name: string): Target {
    const node = this.#virtualNode.metadata.name;
    const mapping = this.#mapping(namespace);
    if (!this.localPods.get({ namespace, name })) {
      throw new AppError('not_found', `pod ${namespace}/${name} is not on node ${node}`);
    }
    const remote = this.#session?.remote(namespace);
    if (mapping?.kind === 'none' || !remote) {
      throw new AppError('not_found', `namespace ${namespace} is not offloaded to node ${node}`);
    }
    if (!this.#session) throw new AppError('not_found', `node ${node} has no connection to its provider`);
    return { connection: this.#session.provider.connection, remoteNamespace: remote.remote };
  }

  async #podList(running: boolean, signal: AbortSignal): Promise<unknown> {
    const options = { fieldSelector: `spec.nodeName=${this.#virtualNode.metadata.name}` };
    const items = await this.#deps.cluster.api.list(pods, options, signal);
    const kept = running ? items.filter((pod) => pod.status?.phase === 'Running') : items;
    return { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: kept };
  }
}
