/** The agents of all clusters: the product's own controllers of storage, each of whose writes may be the last one of its agent. */
import { createGuestSnapshotController } from '#agent/offloading/provider/snapshots/controller.ts';
import {
  createGuestClaimController,
  createRetainedVolumeController,
} from '#agent/offloading/provider/storage/controller.ts';
import { ReachableProviders } from '#agent/storage/providers/reachable-providers.ts';
import { RemoteClaims } from '#agent/storage/providers/remote-claims.ts';
import { createStorageControllers } from '#agent/storage/storage.ts';
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { Random } from '../memory-cluster.ts';
import type { Kubernetes } from './kubernetes.ts';
import { consumer, shop, shopThere } from './names.ts';

const writes: ReadonlySet<string> = new Set(['create', 'update', 'apply', 'mergePatch', 'jsonPatch', 'delete']);

/**
 * Says before each write of an agent whether that agent dies, and if so, whether before the write is carried out or after. `write`: `KIND method`;
 * `body`: to what, and what is written, without versions and times.
 */
export type Fate = (agent: string, write: string, body: string) => 'lives' | 'before' | 'after';

/** Keys of a new Secret and durations are other ones at each attempt. */
const bodyOf = (args: readonly unknown[]): string =>
  JSON.stringify(args, (key, value) => (key === 'data' || typeof value === 'number' ? '' : value))
    .replaceAll(/"resourceVersion":"[^"]*"/g, '')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '');

export interface AgentsDeps {
  readonly clusters: ReadonlyMap<string, Kubernetes>;
  /** Providers to which the consumer is connected. */
  readonly peered: ReadonlySet<string>;
  readonly clock: Clock;
  readonly random: Random;
  readonly fault: (what: string) => void;
}

export class Agents {
  fate: Fate = () => 'lives';
  /** As `KIND method`; those at which an agent died are among them. */
  readonly written: string[] = [];
  readonly #running = new Map<string, AbortController>();
  readonly #deps: AgentsDeps;

  constructor(deps: AgentsDeps) {
    this.#deps = deps;
  }

  /** Those that do not run. */
  start(): void {
    for (const [name, { store }] of this.#deps.clusters) if (!this.#running.has(name)) this.#start(name, store);
  }
  kill(name: string): void {
    this.#running.get(name)?.abort();
    this.#running.delete(name);
  }
  restart(name: string): void {
    if (!this.#running.has(name)) return;
    this.kill(name);
    this.start();
  }
  end(): void {
    for (const name of [...this.#running.keys()]) this.kill(name);
  }

  #start(name: string, store: Kubernetes['store']): void {
    const { clusters, peered, clock, random, fault } = this.#deps;
    const stop = new AbortController();
    this.#running.set(name, stop);
    const signal = sharedByMany(stop.signal);
    const opened = store.open('own', signal);
    const cluster = { ...opened, api: this.#mortal(opened.api, name, signal) } as Cluster;
    const deps = { cluster, clock, log: silentLog, random };
    const guests = [createGuestClaimController, createRetainedVolumeController, createGuestSnapshotController];
    const controllers = guests.map((create) => create(deps));
    if (name === consumer) {
      const providers = new ReachableProviders();
      const own = { clusterId: consumer, providers, systemNamespace: 'liqo', podName: 'agent' };
      controllers.push(...createStorageControllers({ ...deps, ...own }));
      for (const provider of peered) {
        const peer = clusters.get(provider)?.store.open('peer', signal);
        if (!peer) continue;
        const place = () => ({ kind: 'accepted', remoteNamespace: shopThere }) as const;
        const facts = { consumer, provider, place, log: silentLog };
        const api = this.#mortal(peer.api, name, signal);
        const claims = new RemoteClaims({ ...facts, api, caches: peer.caches }, signal);
        claims.follow(new Map([[shop, shopThere]]), signal);
        providers.join(provider, claims, signal);
      }
    }
    for (const controller of controllers)
      void controller.run(signal).catch((error: unknown) => {
        if (!signal.aborted) fault(`a controller of ${name} ended: ${String(error)}`);
      });
  }

  /** A write at which its agent dies is never answered. */
  #mortal(api: KubeApi, agent: string, signal: AbortSignal): KubeApi {
    return new Proxy(api, {
      get: (target, method: keyof KubeApi & string) => {
        const call = target[method] as unknown as (...args: unknown[]) => Promise<unknown>;
        if (!writes.has(method)) return call;
        return async (...args: unknown[]) => {
          if (signal.aborted) return new Promise(() => undefined);
          const write = `${(args[0] as { readonly kind: string }).kind} ${method}`;
          const isRehearsal = (args[2] as { readonly dryRun?: boolean } | undefined)?.dryRun ?? false;
          const fate = isRehearsal ? 'lives' : this.fate(agent, write, bodyOf(args.slice(1, -1)));
          this.written.push(write);
          if (fate === 'before') this.kill(agent);
          const answer = fate === 'before' ? undefined : await call(...args);
          if (fate === 'after') this.kill(agent);
          return fate === 'lives' ? answer : new Promise(() => undefined);
        };
      },
    });
  }
}
