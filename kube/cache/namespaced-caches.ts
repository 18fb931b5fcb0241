/**
 * Informers per namespace that come and go with a mapping of namespaces: for each pair of a local and a remote namespace the caches that `open`
 * makes, until the mapping drops the pair or the signal aborts.
 */
import { abortsWith } from '#shared/async/abort-scope.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import type { Log } from '#shared/ports/log.ts';
import type { Cache, Change } from '../model/types.ts';

/** Caches by names of the caller's choice. */
type CacheSet<C> = { readonly [K in keyof C]: Pick<Cache<KubeObject>, 'synced' | 'isSynced'> };
type ObjectOf<C> = C extends Cache<infer T> ? T : never;

/** The caches of a pair, and its names. */
export type FollowedNamespace<C> = C & {
  readonly local: string;
  readonly remote: string;
  /** Whether all first lists have come. */
  readonly isSynced: () => boolean;
};

export interface NamespacedCachesDeps<C extends CacheSet<C>> {
  /** The caches live until `signal` aborts; they may be shared. */
  readonly open: (local: string, remote: string, signal: AbortSignal) => C;
  /** For each cache: an object that it knows already, or a change that it saw. Not called after the pair has ended. */
  readonly onChange: {
    readonly [K in keyof C]: (local: string, change: Change<ObjectOf<C[K]>>) => void;
  };
  /** All first lists of this pair have come. */
  readonly onSynced: (namespace: FollowedNamespace<C>) => void;
  /** The mapping dropped this local namespace, or maps it elsewhere now. Not called by `restart`, nor when the signal aborts. */
  readonly onDropped?: (local: string) => void;
  readonly log: Log;
}

interface Running<C> {
  readonly namespace: FollowedNamespace<C>;
  readonly stop: AbortController;
}

export class NamespacedCaches<C extends CacheSet<C>> {
  readonly #deps: NamespacedCachesDeps<C>;
  readonly #signal: AbortSignal;
  readonly #running = new Map<string, Running<C>>();

  /** All caches and subscriptions end with `signal`. */
  constructor(deps: NamespacedCachesDeps<C>, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
  }

  /** Undefined: not followed. A namespace whose first lists are missing is returned: see `isSynced`. */
  of(local: string): FollowedNamespace<C> | undefined {
    return this.#running.get(local)?.namespace;
  }

  list(): readonly FollowedNamespace<C>[] {
    return [...this.#running.values()].map(({ namespace }) => namespace);
  }

  /** Starts and stops until exactly `wanted` (local to remote name) is followed. Without effect once the signal has aborted. */
  follow(wanted: ReadonlyMap<string, string>): void {
    if (this.#signal.aborted) return;
    for (const [local, { namespace, stop }] of [...this.#running]) {
      if (wanted.get(local) === namespace.remote) continue;
      stop.abort();
      this.#running.delete(local);
      this.#deps.onDropped?.(local);
    }
    for (const [local, remote] of wanted) if (!this.#running.has(local)) this.#start(local, remote);
  }

  /** Lists everything again, now: after an outage the watches would wait out their back-off. */
  restart(): void {
    const wanted = new Map(this.list().map(({ local, remote }) => [local, remote]));
    if (this.#signal.aborted) return;
    for (const { stop } of this.#running.values()) stop.abort();
    this.#running.clear();
    this.follow(wanted);
  }

  #start(local: string, remote: string): void {
    const { open, onChange, onSynced, log } = this.#deps;
    const stop = new AbortController();
    const signal = abortsWith(this.#signal, stop.signal);
    const opened = open(local, remote, signal);
    const names = Object.keys(onChange) as (keyof C)[];
    const caches = names.map((name) => opened[name] as unknown as Cache<KubeObject>);
    const isSynced = (): boolean => caches.every((cache) => cache.isSynced());
    const namespace = { ...opened, local, remote, isSynced };
    for (const name of names) {
      const hear = onChange[name] as (local: string, change: Change<KubeObject>) => void;
      const unsubscribe = (opened[name] as unknown as Cache<KubeObject>).subscribe((change) => hear(local, change));
      signal.addEventListener('abort', unsubscribe, { once: true });
    }
    this.#running.set(local, { namespace, stop });
    Promise.all(caches.map((cache) => cache.synced(signal))).then(
      () => onSynced(namespace),
      (error: unknown) => {
        if (!signal.aborted) log.error('a namespace cannot be followed', error, { namespace: local, remote });
      },
    );
  }
}
