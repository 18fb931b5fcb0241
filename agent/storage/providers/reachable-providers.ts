/** The connections to providers that are open now. Virtual nodes bring them; what is done with volumes uses them. */
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { homeClaimOf } from '#shared/domain/storage-keys.ts';
import type { RemoteClaims } from './remote-claims.ts';

interface Listener {
  /** A claim at this provider has changed. */
  readonly claim: (claim: PersistentVolumeClaim, provider: string) => void;
  /** This provider can be asked from now on, or has other namespaces of ours than before. */
  readonly moved: (provider: string) => void;
}

export class ReachableProviders {
  /** Of several virtual nodes of one provider, the first is asked. */
  readonly #open = new Map<string, RemoteClaims[]>();
  readonly #listeners = new Set<Listener>();

  /** Until `signal` aborts. */
  join(provider: string, claims: RemoteClaims, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#open.set(provider, [...(this.#open.get(provider) ?? []), claims]);
    const moved = (): void => {
      for (const one of this.#listeners) one.moved(provider);
    };
    claims.listen({
      claim: (claim) => {
        if (homeClaimOf(claim.metadata.annotations)) for (const one of this.#listeners) one.claim(claim, provider);
      },
      moved,
    });
    signal.addEventListener(
      'abort',
      () => {
        const left = (this.#open.get(provider) ?? []).filter((one) => one !== claims);
        if (left.length > 0) this.#open.set(provider, left);
        else this.#open.delete(provider);
      },
      { once: true },
    );
    moved();
  }

  of(provider: string): RemoteClaims | undefined {
    return this.#open.get(provider)?.[0];
  }

  list(): readonly { readonly provider: string; readonly claims: RemoteClaims }[] {
    return [...this.#open].flatMap(([provider, [claims]]) => (claims ? [{ provider, claims }] : []));
  }

  /** Returns the function that ends it. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    for (const provider of this.#open.keys()) listener.moved(provider);
    return () => this.#listeners.delete(listener);
  }
}
