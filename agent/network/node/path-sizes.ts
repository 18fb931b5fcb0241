/** Keeps the sizes of links, and makes every namespace of this node use a new size before it is reported as in effect. */
import type { LinkSizes } from '../objects/link-sizes.ts';
import type { NamespaceReconciler } from './namespace-reconciler.ts';

export interface PathSizes {
  now(): LinkSizes;
  /** Namespaces that carry links; returns what takes this one out again. */
  register(reconciler: Pick<NamespaceReconciler, 'wake' | 'applied'>): () => void;
  /** Resolves once all namespaces have the configured size (or again the one in effect). */
  measuring(link: string, on: boolean, signal: AbortSignal): Promise<void>;
  found(link: string, mtu: number | undefined): void;
}

export function createPathSizes(): PathSizes {
  const measuring = new Set<string>();
  const found = new Map<string, number>();
  const programmers = new Set<Pick<NamespaceReconciler, 'wake' | 'applied'>>();
  return {
    now: () => ({ measuring, found }),
    register(reconciler) {
      programmers.add(reconciler);
      return () => void programmers.delete(reconciler);
    },
    async measuring(link, on, signal) {
      if (on) measuring.add(link);
      else measuring.delete(link);
      await Promise.all([...programmers].map((reconciler) => reconciler.applied(signal)));
    },
    found(link, mtu) {
      if (found.get(link) === mtu) return;
      if (mtu === undefined) found.delete(link);
      else found.set(link, mtu);
      for (const reconciler of programmers) reconciler.wake();
    },
  };
}
