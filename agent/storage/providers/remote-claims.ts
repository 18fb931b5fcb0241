/** The claims that stand at one provider for ours, over one connection: namespaces are watched from the first volume in them on. */
import { NamespacedCaches } from '#kube/cache/namespaced-caches.ts';
import type { Cache, Caches, KubeApi } from '#kube/model/types.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { type ObjectRef, refOfKey } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { homeClaimOf } from '#shared/domain/storage-keys.ts';
import type { Log } from '#shared/ports/log.ts';
import type { Place } from '../model/place.ts';

export interface RemoteClaimsDeps {
  readonly api: KubeApi;
  readonly caches: Caches;
  readonly consumer: string;
  readonly provider: string;
  /** Undefined: nothing is known about this namespace yet. */
  readonly place: (namespace: string) => Place | undefined;
  readonly log: Log;
}

export interface HearRemote {
  /** A claim has changed there. */
  readonly claim: (claim: PersistentVolumeClaim) => void;
  /** Namespaces are mapped otherwise than before. */
  readonly moved: () => void;
}

export class RemoteClaims {
  readonly api: KubeApi;
  readonly #deps: RemoteClaimsDeps;
  readonly #caches: NamespacedCaches<{ readonly claims: Cache<PersistentVolumeClaim> }>;
  readonly #selector: string;
  #accepted: ReadonlyMap<string, string> = new Map();
  #wanted = new Map<string, string>();
  #hear: HearRemote | undefined;

  /** All watches end with `signal`. */
  constructor(deps: RemoteClaimsDeps, signal: AbortSignal) {
    const { caches, consumer, provider, log, api } = deps;
    this.#deps = deps;
    this.api = api;
    this.#selector = `${label.origin}=${consumer},${label.destination}=${provider}`;
    this.#caches = new NamespacedCaches(
      {
        open: (_, namespace, until) => ({
          claims: caches.scoped(persistentVolumeClaims, { namespace, labelSelector: this.#selector }, until),
        }),
        onChange: {
          claims: (_, { before, after }) => {
            const claim = after ?? before;
            if (claim) this.#hear?.claim(claim);
          },
        },
        onSynced: () => undefined,
        log,
      },
      signal,
    );
  }

  listen(hear: HearRemote): void {
    this.#hear = hear;
  }

  place(namespace: string): Place | undefined {
    return this.#deps.place(namespace);
  }

  /** `accepted`: local to remote names of all namespaces that the provider has made. New ones are looked at once for claims of ours. */
  follow(accepted: ReadonlyMap<string, string>, signal: AbortSignal): void {
    const before = this.#accepted;
    this.#accepted = accepted;
    this.#wanted = new Map([...this.#wanted].filter(([local, remote]) => accepted.get(local) === remote));
    this.#caches.follow(this.#wanted);
    for (const [local, remote] of accepted)
      if (before.get(local) !== remote) void this.#discover(local, remote, signal);
    this.#hear?.moved();
  }

  /** From the cache when it is there for one of these claims of ours, by UID; else as the API server has it: the cache may lag behind our own patch. */
  async find(
    local: string,
    ref: ObjectRef,
    claimUids: readonly string[],
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim | undefined> {
    const followed = this.#caches.of(local);
    const known = followed?.remote === ref.namespace ? followed?.claims.get(ref) : undefined;
    const home = homeClaimOf(known?.metadata.annotations);
    return home && claimUids.includes(home.uid) ? known : this.api.get(persistentVolumeClaims, ref, signal);
  }

  /** As far as they are watched: those for this claim, `namespace/name`, of ours. */
  byHome(key: string): readonly PersistentVolumeClaim[] {
    const { namespace = '' } = refOfKey(key);
    return (this.#caches.of(namespace)?.claims.list() ?? []).filter((claim) => {
      const home = homeClaimOf(claim.metadata.annotations);
      return home !== undefined && `${home.namespace}/${home.name}` === key;
    });
  }

  /** From now on changes of claims there are told. */
  watch(local: string, remote: string): void {
    if (this.#wanted.get(local) === remote || this.#accepted.get(local) !== remote) return;
    this.#wanted.set(local, remote);
    this.#caches.follow(this.#wanted);
  }

  /** The provider answers again after an outage. */
  restart(): void {
    this.#caches.restart();
  }

  async #discover(local: string, remote: string, signal: AbortSignal): Promise<void> {
    try {
      const options = { namespace: remote, labelSelector: this.#selector };
      const found = await this.#deps.api.list(persistentVolumeClaims, options, signal);
      if (found.length > 0) this.watch(local, remote);
    } catch (error) {
      // What is wanted there is looked at when it is needed; an unreachable provider starts another session.
      if (!signal.aborted)
        this.#deps.log.debug('claims at a provider were not listed', { namespace: remote, error: String(error) });
    }
  }
}
