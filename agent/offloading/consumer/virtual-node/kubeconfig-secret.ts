/** Follows the Secret that holds a virtual node's kubeconfig, wherever the VirtualNode says it is. */
import { fromBase64 } from '#agent/pki/pem.ts';
import type { Cache, Caches } from '#kube/model/types.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import type { Secret } from '#shared/domain/kube-object.ts';

export class Identity {
  readonly #caches: Caches;
  readonly #use: (kubeconfig: string) => void;
  readonly #onChange: () => void;
  readonly #signal: AbortSignal;
  #at: { readonly namespace: string; readonly name: string } | undefined;
  #cache: Cache<Secret> | undefined;
  #stop = new AbortController();

  /** `use` hears of each content; a Secret that is gone takes no connection away, for what is being torn down needs it to the end. */
  constructor(caches: Caches, use: (kubeconfig: string) => void, onChange: () => void, signal: AbortSignal) {
    this.#caches = caches;
    this.#use = use;
    this.#onChange = onChange;
    this.#signal = signal;
  }

  follow(namespace: string, name: string | undefined): void {
    if (name === this.#at?.name && namespace === (this.#at?.namespace ?? namespace)) return;
    this.#stop.abort();
    this.#stop = new AbortController();
    this.#at = name === undefined ? undefined : { namespace, name };
    this.#cache = undefined;
    if (name === undefined) return;
    const options = { namespace, fieldSelector: `metadata.name=${name}` };
    this.#cache = this.#caches.scoped(secrets, options, abortsWith(this.#signal, this.#stop.signal));
    this.#cache.subscribe(({ after }) => {
      const text = after?.data?.kubeconfig;
      if (text !== undefined) this.#use(fromBase64(text));
      this.#onChange();
    });
  }

  isPresent(): boolean {
    return this.#at !== undefined && this.#cache?.get(this.#at)?.data?.kubeconfig !== undefined;
  }

  async synced(signal: AbortSignal): Promise<void> {
    await this.#cache?.synced(signal);
  }
}
