/** What one virtual node reflects over one connection: tokens for its own pods, and in its turn what all virtual nodes of the provider share. */

import type { ControllerMetrics } from '#kube/model/metrics.ts';
import type { Cache, Cluster } from '#kube/model/types.ts';
import { abortScope, type LinkedAbort } from '#shared/async/abort-scope.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { ReflectionOptions } from './engine/options.ts';
import type { ProviderClients } from './engine/provider-clients.ts';
import type { ReflectedItems } from './model/reflected-items.ts';
import { Reflection } from './reflection.ts';
import type { SharedReflection } from './shared-reflection.ts';
import type { TokenContext } from './tokens/decide.ts';
import { TokenReflector } from './tokens/token-reflector.ts';

export interface NodeReflectionDeps extends TokenContext {
  readonly local: Cluster;
  readonly peer: ProviderClients;
  /** Pods bound to this virtual node, indexed by `namespace`. */
  readonly localPods: Cache<Pod>;
  readonly shared: SharedReflection;
  readonly options: () => ReflectionOptions;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: ControllerMetrics;
}

export class NodeReflection {
  readonly #deps: NodeReflectionDeps;
  readonly #signal: AbortSignal;
  readonly #tokens: TokenReflector;
  #wanted: ReadonlyMap<string, string> = new Map();
  #options: ReflectionOptions;
  #current: { readonly reflection: Reflection; readonly term: LinkedAbort } | undefined;

  constructor(deps: NodeReflectionDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
    this.#options = deps.options();
    const { workers } = this.#options.kinds.serviceaccount;
    const home = (namespace: string) => deps.shared.home(deps.provider, this.#options, namespace);
    const onSwitch = (look: (namespace: string) => void) => deps.shared.followTokens(look);
    this.#tokens = new TokenReflector({ ...deps, home, onSwitch, workers }, signal);
  }

  /** `wanted`: local to remote names of the namespaces that the provider has made. */
  follow(wanted: ReadonlyMap<string, string>): void {
    this.#wanted = wanted;
    this.#tokens.follow(wanted);
    this.#current?.reflection.follow(wanted);
  }

  /** The provider answers again after an outage. */
  restart(): void {
    this.#tokens.restart();
    this.#current?.reflection.restart();
  }

  /** The options may have changed. */
  update(): void {
    const options = this.#deps.options();
    if (sameContent(options, this.#options)) return;
    this.#options = options;
    this.#current?.term.abort();
    this.#tokens.restart();
  }

  /** What is reflected now. */
  items(): ReflectedItems[] {
    return [...this.#tokens.items(), ...(this.#current?.reflection.items() ?? [])];
  }

  /** Until the signal of the constructor aborts. */
  async run(): Promise<void> {
    const { shared, provider } = this.#deps;
    await Promise.all([
      this.#tokens.run(this.#signal),
      shared.providerMutex.run(provider, this.#signal, (until) => this.#reflect(until)),
    ]);
  }

  async #reflect(until: AbortSignal): Promise<void> {
    const { shared, provider } = this.#deps;
    const { nodes, pod, resyncMs } = shared.deps;
    while (!until.aborted) {
      const term = abortScope(until);
      const reflection = new Reflection(
        {
          ...this.#deps,
          scopes: shared.scopes,
          nodes,
          pod: (namespace, name) => pod(provider, namespace, name),
          ...(resyncMs === undefined ? {} : { resyncMs }),
        },
        this.#options,
        term.signal,
      );
      this.#current = { reflection, term };
      reflection.follow(this.#wanted);
      await reflection.run(term.signal);
      this.#current = undefined;
      // It ends by itself only when this cluster's caches have ended: then there is nothing to restart with.
      const isOver = !term.signal.aborted;
      term.abort();
      term.unlink();
      if (isOver) return;
    }
  }
}
