/** Everything that is reflected to one provider, in all namespaces that are offloaded there, as long as one set of options holds. */
import type { Cache, Cluster } from '#kube/model/types.ts';
import type { Service } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Node, Pod } from '#shared/domain/kube-object.ts';
import { type NetworkFacts, networkFacts } from './engine/cluster-facts.ts';
import type { ReflectionOptions } from './engine/options.ts';
import { Reflector, type ReflectorDeps, type ReflectorRules } from './engine/reflector.ts';
import { EventReflector } from './events/event-reflector.ts';
import { outgoingKinds } from './kinds/all.ts';
import { serviceNameOf, sliceIndex } from './kinds/endpoint-slice.ts';
import type { ClusterFacts, OutgoingKind, ReflectorName } from './kinds/kind.ts';
import type { Concerned } from './kinds/provider-event.ts';
import { rootCa } from './model/api-access.ts';
import { isReflected, isRootCaReflected, isSliceReflected, type PolicyType } from './model/policy.ts';
import type { ReflectedItems } from './model/reflected-items.ts';

export interface ReflectionDeps extends Omit<ReflectorDeps, 'local' | 'shape' | 'around'> {
  readonly local: Cluster;
  /** Every virtual Node of this cluster. */
  readonly nodes: Cache<Node>;
  /** A pod here that is offloaded to this provider, through whichever virtual node. */
  readonly pod: (namespace: string, name: string) => Pod | undefined;
  /** Bounds how long a lost event can matter; jittered. */
  readonly resyncMs?: number;
}

export class Reflection {
  readonly #deps: ReflectionDeps;
  readonly #reflectors = new Map<ReflectorName, Reflector>();
  readonly #events: EventReflector | undefined;
  readonly #facts: NetworkFacts;
  #wanted: ReadonlyMap<string, string> = new Map();

  /** Ends with `signal`, as does every cache that it opens. */
  constructor(deps: ReflectionDeps, options: ReflectionOptions, signal: AbortSignal) {
    this.#deps = deps;
    this.#facts = networkFacts(deps.local.caches, deps.nodes, deps.provider);
    const around: ClusterFacts = { ...this.#facts, service: (namespace, name) => this.#service(namespace, name) };
    const common: ReflectorDeps = { ...deps, shape: options, around };
    for (const kind of outgoingKinds) {
      const chosen = options.kinds[kind.name];
      // Slices follow the policy of their Services, so those are known even where they are not reflected.
      const isNeeded = chosen.workers > 0 || (kind.name === 'service' && options.kinds.endpointslice.workers > 0);
      if (!isNeeded) continue;
      const rules = { ...chosen, ...this.#rulesOf(kind, options) };
      this.#reflectors.set(kind.name, new Reflector(kind, rules, common, signal));
    }
    if (options.kinds.event.workers > 0 && !options.kinds.event.forbidden) {
      const object = (namespace: string, about: Concerned) => this.#object(namespace, about);
      this.#events = new EventReflector(options.kinds.event, { ...common, object }, signal);
    }
  }

  /** Local to remote names. */
  follow(wanted: ReadonlyMap<string, string>): void {
    this.#wanted = wanted;
    for (const reflector of this.#reflectors.values()) reflector.follow(wanted);
    this.#events?.follow(wanted);
  }

  /** Lists everything again, now: after an outage the watches would wait out their back-off. */
  restart(): void {
    for (const reflector of this.#reflectors.values()) reflector.restart();
    this.#events?.restart();
  }

  items(): ReflectedItems[] {
    return [...this.#reflectors.values()].flatMap((reflector) => reflector.items());
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#facts.synced(signal);
    } catch {
      return;
    }
    const slices = (): Reflector | undefined => this.#reflectors.get('endpointslice');
    const unfollow = this.#facts.follow({
      onNode: (name) => {
        for (const namespace of slices()?.namespaces() ?? []) slices()?.lookAtIndexed(namespace, sliceIndex.node, name);
      },
      onIp: (namespace, address) => slices()?.lookAtIndexed(namespace, sliceIndex.address, address),
      onRanges: () => slices()?.lookAtAll(),
    });
    try {
      const running = [...this.#reflectors.values(), ...(this.#events ? [this.#events] : [])];
      await Promise.all([...running.map((one) => one.run(signal)), this.#resync(signal)]);
    } finally {
      unfollow();
    }
  }

  async #resync(signal: AbortSignal): Promise<void> {
    const { clock, resyncMs = 5 * 60_000 } = this.#deps;
    while (!signal.aborted) {
      await clock.sleep(resyncMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      for (const reflector of this.#reflectors.values()) reflector.lookAtAll();
    }
  }

  #rulesOf(kind: OutgoingKind, { kinds }: ReflectionOptions): Omit<ReflectorRules, 'workers' | 'type'> {
    const { type, forbidden } = kinds[kind.name];
    const rules = this.#usualRules(kind, type);
    return forbidden ? { ...rules, allows: () => false } : rules;
  }

  #usualRules(kind: OutgoingKind, type: PolicyType): Omit<ReflectorRules, 'workers' | 'type'> {
    switch (kind.name) {
      case 'endpointslice':
        return {
          isInformed: (namespace) => this.#reflectors.get('service')?.isSynced(namespace) ?? true,
          allows: (slice) => {
            const name = serviceNameOf(slice as never);
            const owner = name === undefined ? undefined : this.#service(slice.metadata.namespace ?? '', name);
            return isSliceReflected(slice, owner, type);
          },
        };
      case 'service':
        return {
          allows: (service) => isReflected(service, type),
          onChange: (namespace, name) =>
            this.#reflectors.get('endpointslice')?.lookAtIndexed(namespace, sliceIndex.service, name),
        };
      case 'configmap':
        return {
          allows: (object) => (object.metadata.name === rootCa ? isRootCaReflected(object) : isReflected(object, type)),
        };
      default:
        return { allows: (object) => isReflected(object, type) };
    }
  }

  #service(namespace: string, name: string): Service | undefined {
    return this.#reflectors.get('service')?.get(namespace, name) as Service | undefined;
  }

  #object(namespace: string, { kind, name }: Concerned): KubeObject | undefined {
    if (!this.#wanted.has(namespace)) return undefined;
    if (kind === 'Pod') return this.#deps.pod(namespace, name);
    const reflector = [...this.#reflectors.values()].find((one) => one.kind.local.kind === kind);
    return reflector?.get(namespace, reflector.kind.localName(name, this.#deps.consumer));
  }
}
