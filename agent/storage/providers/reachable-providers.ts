/** The connections to providers that are open now. Virtual nodes bring them; what is done with volumes uses them. */
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { homeClaimOf, type RemoteClaim } from '#shared/domain/storage-keys.ts';
import type { RemoteClaims } from './remote-claims.ts';

interface Listener {
  /** A claim at this provider has changed. */
  readonly claim: (claim: PersistentVolumeClaim, provider: string) => void;
  /** This provider can be asked from now on, or has other namespaces of ours than before. */
  readonly moved: (provider: string) => void;
}

/** Whether the provider that has a volume can be asked for the claim behind it. */
export type Reach =
  | { readonly kind: 'reached'; readonly peer: RemoteClaims }
  /** Nothing is known for now. */
  | { readonly kind: 'unknown'; readonly on: string }
  /** The claim is in no namespace that this cluster reaches. */
  | { readonly kind: 'unreachable'; readonly why: string };

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

  /** For the claim behind a volume of a claim in namespace `local`. Its namespace there is watched from then on. */
  reach({ provider, namespace }: RemoteClaim, local: string): Reach {
    const peer = this.of(provider);
    const place = peer?.place(local);
    if (!peer || place === undefined) return { kind: 'unknown', on: `the connection to cluster ${provider}` };
    if (place.kind === 'held') return { kind: 'unknown', on: place.why };
    if (place.kind === 'none' || place.remoteNamespace !== namespace)
      return {
        kind: 'unreachable',
        why: `namespace ${local} is no longer offloaded to namespace ${namespace} of cluster ${provider}`,
      };
    peer.watch(local, namespace);
    return { kind: 'reached', peer };
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
