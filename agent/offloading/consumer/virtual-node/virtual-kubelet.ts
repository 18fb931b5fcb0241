/**
 * One virtual node at work: its Node, its pods, its kubelet endpoint. Runs until stopped; what it needs and what it has reached is read from
 * `state()`, and every change of that is announced, so that the VirtualNode controller never polls.
 */
import type { ReflectionOptions } from '#agent/reflection/engine/options.ts';
import type { ConnectCluster } from '#agent/runtime/connect-cluster.ts';
import type { Cache } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import { keyOf, type Node, type Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { Log } from '#shared/ports/log.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { createNodeEndpoint, type NodeEndpoint, type NodeEndpointDeps } from '../kubelet-api/node-endpoint.ts';
import { createOffloadedNamespaces, type OffloadedNamespaces } from '../namespaces/offloaded-namespaces.ts';
import { pruneLocalPod } from '../pods/cache-transforms.ts';
import { Identity } from './kubeconfig-secret.ts';
import { createLink, type Link } from './link-state.ts';
import { NodeKeeper } from './node-heartbeat.ts';
import { isReady, type NodeInput } from './node-object.ts';
import { ProviderHealth } from './provider-health.ts';
import type { ProviderSession } from './provider-session.ts';
import { type SessionGround, type SessionNode, sessionDeps } from './session-deps.ts';
import { Sessions } from './session-switch.ts';
import { createProviderState, type ProviderState } from './slice-state.ts';

export interface VirtualKubeletDeps extends NodeEndpointDeps, SessionGround {
  readonly connectPeer: ConnectCluster;
  /** Every virtual Node of this cluster. */
  readonly nodes: Cache<Node>;
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

/** After an outage of this length all caches are listed again at once, instead of each watch after its back-off. */
const outageWorthMs = 5_000;
const byNamespace = { namespace: (pod: Pod): readonly string[] => [pod.metadata.namespace ?? ''] };

export class VirtualKubelet {
  readonly localPods: Cache<Pod>;
  readonly #deps: VirtualKubeletDeps;
  readonly #onChange: (what: KubeletChange) => void;
  readonly #stop = new AbortController();
  readonly #offloaded: OffloadedNamespaces;
  readonly #link: Link;
  readonly #providerState: ProviderState;
  readonly #health: ProviderHealth;
  readonly #sessions: Sessions;
  readonly #identity: Identity;
  readonly #keeper: NodeKeeper;
  readonly #endpoint: NodeEndpoint;
  readonly #log: Log;
  readonly #running: Promise<unknown>[] = [];
  readonly #unsubscribes: (() => void)[] = [];
  #virtualNode: VirtualNode;
  #options: ReflectionOptions;
  #nodeWanted = true;
  #nodeTaken = false;

  constructor(deps: VirtualKubeletDeps, virtualNode: VirtualNode, onChange: (what: KubeletChange) => void) {
    const { cluster, clock } = deps;
    const { name } = virtualNode.metadata;
    this.#deps = deps;
    this.#onChange = onChange;
    this.#virtualNode = virtualNode;
    this.#options = deps.reflection.options(virtualNode);
    this.#log = deps.log.with({ node: name });
    const bound = { fieldSelector: `spec.nodeName=${name}`, transform: pruneLocalPod, indexes: byNamespace };
    this.localPods = cluster.caches.scoped(pods, bound, this.#stop.signal);
    this.#offloaded = createOffloadedNamespaces(
      cluster.caches,
      () => this.#virtualNode,
      (before, after) => this.#session?.useMap(before, after),
    );
    this.#link = createLink(
      {
        caches: cluster.caches,
        clock,
        virtualNode: () => this.#virtualNode,
        sight: () => ({ nodeReady: this.state().nodeReady, answered: this.#health.answered }),
      },
      { state: () => this.#linkChanged(), ranges: () => this.#lookAtAllPods() },
    );
    this.#providerState = createProviderState(
      cluster.caches,
      () => this.#virtualNode,
      () => this.#keeper.look(),
    );
    const lent: SessionNode = {
      virtualNode: () => this.#virtualNode,
      options: () => this.#options,
      link: this.#link,
      localPods: this.localPods,
      mapping: (namespace) => this.#offloaded.mapping(namespace),
      nodeReady: () => this.#podsMayServe(),
      log: this.#log,
      onRemoteChange: () => this.#onChange('pods'),
    };
    this.#sessions = new Sessions(
      {
        connectPeer: deps.connectPeer,
        over: (provider) => sessionDeps(deps, lent, provider),
        informed: (signal) =>
          Promise.all([this.#offloaded, this.#link, deps.reflection].map((known) => known.synced(signal))),
        map: () => this.#offloaded.map(),
        log: this.#log,
        onSession: () => this.#health.again(),
        onProblem: () => onChange('state'),
      },
      this.#stop.signal,
    );
    this.#identity = new Identity(
      cluster.caches,
      (kubeconfig) => this.#sessions.use(kubeconfig),
      () => this.#onChange('state'),
      this.#stop.signal,
    );
    this.#health = new ProviderHealth({
      clock,
      api: () => this.#session?.provider.api,
      onLook: (changed, outageMs) => this.#looked(changed, outageMs),
      isAwaited: () => this.#link.verdict() !== this.#link.state(),
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
    this.#endpoint = createNodeEndpoint(
      {
        name,
        localPods: this.localPods,
        mapping: (namespace) => this.#offloaded.mapping(namespace),
        session: () => this.#session,
      },
      { ...deps, log: this.#log },
    );
  }

  /** Resolves when the endpoint listens; everything else comes as it comes. */
  async start(): Promise<void> {
    const { nodes, reflection } = this.#deps;
    const { signal } = this.#stop;
    this.#unsubscribes.push(
      this.#offloaded.follow(),
      this.#endpoint.follow(),
      nodes.subscribe(({ before, after }) => this.#nodeChanged(before, after)),
      this.#link.follow(),
      this.#providerState.follow(),
      this.localPods.subscribe(() => this.#onChange('pods')),
      reflection.follow(() => this.#useOptions()),
      ...this.#counted(),
    );
    await this.#endpoint.listen();
    this.update(this.#virtualNode);
    const work = {
      health: this.#health.run(signal),
      node: this.#keeper.run(signal),
      certificate: this.#endpoint.keepCertificate(signal),
    };
    for (const [what, running] of Object.entries(work)) {
      const ended = (error: unknown): void => {
        if (!signal.aborted) this.#log.error('work for a virtual node has ended', error, { what });
      };
      this.#running.push(running.catch(ended));
    }
    this.#log.info('virtual node started', { port: this.#endpoint.port });
  }

  #counted(): (() => void)[] {
    const { metadata, spec } = this.#virtualNode;
    const end = this.#deps.nodeMetrics?.follow({
      name: metadata.name,
      slice: metadata.labels?.[label.resourceSliceName] ?? metadata.name,
      provider: spec.clusterID,
      localPods: this.localPods,
      reflected: () => this.#session?.reflected() ?? [],
      isMade: (pod) => this.#session?.isMade(pod) ?? false,
      answers: () => this.#health.current.answers,
    });
    return end === undefined ? [] : [end];
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

  /** The Node is not kept from now on; the caller removes it. */
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
      problem: this.#sessions.problem ?? (answers ? undefined : problem),
      hasIdentity: this.#identity.isPresent(),
      node: !this.#nodeWanted ? 'unwanted' : this.#nodeTaken ? 'taken' : 'wanted',
      nodeReady: !this.#nodeTaken && isReady(this.#deps.nodes.get({ name })),
    };
  }

  /** Resolves when all that `state()` and `localPods` say is knowledge and not ignorance. */
  async informed(signal: AbortSignal): Promise<void> {
    await Promise.all([this.localPods.synced(signal), this.#offloaded.synced(signal), this.#identity.synced(signal)]);
    await this.#sessions.settled();
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
    await this.#sessions.end();
    await Promise.allSettled(this.#running);
    this.#log.info('virtual node stopped');
  }

  get #session(): ProviderSession | undefined {
    return this.#sessions.current;
  }

  /** A Node that is not there yet (or not wanted) marks no pod unavailable. */
  #podsMayServe(): boolean {
    const node = this.#deps.nodes.get({ name: this.#virtualNode.metadata.name });
    return !node || this.#nodeTaken || isReady(node);
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
    if (this.#link.state() === 'down') this.#health.again();
    this.#keeper.look();
  }

  #looked(changed: boolean, outageMs: number): void {
    if (outageMs >= outageWorthMs) this.#session?.catchUp();
    if (changed || this.#link.state() === 'down') this.#keeper.look();
    if (changed) this.#onChange('state');
    if (this.#health.current.answers) void this.#keeper.renewLease(this.#stop.signal);
  }

  #nodeInput(): NodeInput | undefined {
    const { answers, version } = this.#health.current;
    const network = this.#link.verdict();
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
}
