/** One watch of a kind in a local namespace, however many providers it is reflected to; ends with the last of them. */
import type { Cache, CacheOptions, Caches } from '#kube/model/types.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';

interface Scope {
  readonly cache: Cache<KubeObject>;
  readonly stop: AbortController;
  users: number;
}

export class SharedScopes {
  readonly #caches: Caches;
  readonly #scopes = new Map<string, Scope>();

  constructor(caches: Caches) {
    this.#caches = caches;
  }

  /** `name` stands for the transform: the same one must come with it always. Subscriptions are the user's to end. */
  use<T extends KubeObject>(
    name: string,
    type: ResourceType<T>,
    options: CacheOptions<T> & { readonly namespace: string },
    signal: AbortSignal,
  ): Cache<T> {
    if (signal.aborted) return this.#caches.scoped(type, options, signal);
    const key = `${name} ${options.namespace} ${options.labelSelector ?? ''}`;
    const scope = this.#scopes.get(key) ?? this.#open(key, type, options);
    scope.users++;
    signal.addEventListener('abort', () => this.#release(key, scope), { once: true });
    return scope.cache as unknown as Cache<T>;
  }

  #open<T extends KubeObject>(key: string, type: ResourceType<T>, options: CacheOptions<T>): Scope {
    const stop = new AbortController();
    const cache = this.#caches.scoped(type, options, stop.signal) as unknown as Cache<KubeObject>;
    const scope = { cache, stop, users: 0 };
    this.#scopes.set(key, scope);
    return scope;
  }

  #release(key: string, scope: Scope): void {
    scope.users--;
    if (scope.users > 0) return;
    this.#scopes.delete(key);
    scope.stop.abort();
  }
}
