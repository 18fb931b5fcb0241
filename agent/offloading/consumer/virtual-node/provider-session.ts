/** Everything that lives as long as one connection to a provider: the caches of its namespaces and the work on pods. */
import type { ReflectedItems } from '#agent/reflection/model/reflected-items.ts';
import { NodeReflection, type NodeReflectionDeps } from '#agent/reflection/node-reflection.ts';
import type { ConnectedCluster } from '#agent/runtime/connect-cluster.ts';
import type { ReachableProviders } from '#agent/storage/providers/reachable-providers.ts';
import { RemoteClaims } from '#agent/storage/providers/remote-claims.ts';
import type { OwnWrites } from '#kube/cache/own-writes.ts';
import type { Controller } from '#kube/model/types.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { NamespaceMap } from '#shared/schema/liqo/namespace-map.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { accepted, followed, mappingOf } from '../namespaces/mappings.ts';
import { createOffloadedPodController, type OffloadedPodDeps, writtenShadowPods } from '../pods/controller.ts';
import { type RemoteNamespace, type RemoteNamespaces, remoteNamespaces } from '../pods/remote-namespaces.ts';

export interface SessionDeps
  extends Omit<OffloadedPodDeps, 'peer' | 'remote' | 'written' | 'local'>,
    Pick<NodeReflectionDeps, 'local' | 'shared' | 'options'> {
  readonly provider: ConnectedCluster;
  readonly consumer: string;
  readonly providerId: string;
  readonly nodeName: string;
  /** Absent: no volumes are made at providers. */
  readonly providers?: ReachableProviders | undefined;
  /** Something at the provider changed, after the pod's own turn was queued. */
  readonly onRemoteChange: () => void;
}

export class ProviderSession {
  readonly provider: ConnectedCluster;
  readonly #deps: SessionDeps;
  readonly #stop: AbortController;
  readonly #namespaces: RemoteNamespaces;
  readonly #written: OwnWrites<ShadowPod>;
  readonly #pods: Controller;
  readonly #reflection: NodeReflection;
  readonly #claims: RemoteClaims;
  #running: Promise<unknown> | undefined;

  /** `stop` also ends the connection that `deps.provider` stands for. */
  constructor(deps: SessionDeps, stop: AbortController) {
    this.#deps = deps;
    this.#stop = stop;
    this.provider = deps.provider;
    this.#written = writtenShadowPods(deps.clock);
    this.#pods = createOffloadedPodController({
      ...deps,
      peer: deps.provider.api,
      remote: (namespace) => this.#namespaces.of(namespace),
      written: this.#written,
    });
    this.#namespaces = remoteNamespaces(
      {
        caches: deps.provider.caches,
        consumer: deps.consumer,
        provider: deps.providerId,
        nodeName: deps.nodeName,
        log: deps.log,
        written: this.#written,
        onChange: (key) => {
          this.#pods.enqueue(key);
          deps.onRemoteChange();
        },
        onNamespace: (namespace) => this.lookAtNamespace(namespace),
      },
      stop.signal,
    );
    this.#reflection = new NodeReflection({ ...deps, peer: deps.provider, provider: deps.providerId }, stop.signal);
    const { api, caches } = deps.provider;
    const place = deps.mapping;
    this.#claims = new RemoteClaims({ ...deps, api, caches, provider: deps.providerId, place }, stop.signal);
  }

  start(map: NamespaceMap | undefined): void {
    this.#follow(map);
    this.#deps.providers?.join(this.#deps.providerId, this.#claims, this.#stop.signal);
    // Also when what it waits for here ends before it does, as at the end of its virtual node.
    this.#running = Promise.all([this.#pods.run(this.#stop.signal), this.#reflection.run()]).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.#deps.log.warn('the work at a provider has ended', { why: String(error) });
    });
  }

  #follow(map: NamespaceMap | undefined): void {
    this.#namespaces.follow(followed(map));
    this.#reflection.follow(accepted(map));
    if (this.#deps.providers) this.#claims.follow(accepted(map), this.#stop.signal);
  }

  /** Whose namespace is mapped otherwise than before is looked at. */
  useMap(before: NamespaceMap | undefined, after: NamespaceMap | undefined): void {
    this.#follow(after);
    for (const local of new Set(this.#deps.localPods.list().map(({ metadata }) => metadata.namespace ?? ''))) {
      if (!sameContent(mappingOf(before, local), mappingOf(after, local))) this.lookAtNamespace(local);
    }
  }

  /** The options of reflection may have changed. */
  useOptions(): void {
    this.#reflection.update();
  }

  /** The provider answers again after an outage. */
  catchUp(): void {
    this.#namespaces.restart();
    this.#reflection.restart();
    this.#claims.restart();
  }

  look(key: string): void {
    this.#pods.enqueue(key);
  }

  lookAtNamespace(namespace: string): void {
    for (const pod of this.#deps.localPods.byIndex('namespace', namespace)) {
      this.#pods.enqueue(`${namespace}/${pod.metadata.name}`);
    }
    const followed = this.#namespaces.of(namespace);
    for (const shadow of followed ? this.#written.list(followed.shadows, followed.remote) : []) {
      this.#pods.enqueue(`${namespace}/${shadow.metadata.name}`);
    }
    this.#deps.onRemoteChange();
  }

  followed(): readonly RemoteNamespace[] {
    return this.#namespaces.list();
  }

  remote(namespace: string): RemoteNamespace | undefined {
    return this.#namespaces.of(namespace);
  }

  /** ShadowPods and Pods of this node that are still there, as far as is known; undefined while a first list is missing. */
  left(): { readonly shadows: number; readonly pods: number; readonly first?: string } | undefined {
    const all = this.#namespaces.list();
    if (all.some((namespace) => !namespace.isSynced())) return undefined;
    const shadows = all.flatMap((namespace) => namespace.shadows.list());
    const pods = all.flatMap((namespace) => namespace.pods.list());
    const [first] = [...pods, ...shadows].map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
    return { shadows: shadows.length, pods: pods.length, ...(first === undefined ? {} : { first }) };
  }

  /** What is reflected now, by namespace and by the controller that does it. */
  reflected(): ReflectedItems[] {
    const shadows = this.#namespaces.list().map(({ local: namespace, shadows }) => {
      return { namespace, controller: this.#pods.name, count: shadows.list().length };
    });
    return [...shadows, ...this.#reflection.items()];
  }

  /** The provider has made a Pod for this one. */
  isMade({ metadata }: Pod): boolean {
    const { namespace = '', name } = metadata;
    const followed = this.#namespaces.of(namespace);
    return followed?.pods.get({ namespace: followed.remote, name }) !== undefined;
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}
