/** Which namespaces are offloaded to a virtual node, as its NamespaceMap says. */
import type { Caches } from '#kube/model/types.ts';
import { type NamespaceMap, namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import type { Mapping } from '../pods/decide.ts';
import { isOutgoing, mappingOf } from './mappings.ts';

export interface OffloadedNamespaces {
  map(): NamespaceMap | undefined;
  /** Undefined: that is not known. */
  mapping(namespace: string): Mapping | undefined;
  /** Resolves when `map` is knowledge and not ignorance. */
  synced(signal: AbortSignal): Promise<void>;
  /** Calls back when the map has changed; returns the function that ends it. */
  follow(): () => void;
}

export function createOffloadedNamespaces(
  caches: Caches,
  virtualNode: () => VirtualNode,
  onChange: (before: NamespaceMap | undefined, after: NamespaceMap | undefined) => void,
): OffloadedNamespaces {
  const maps = caches.cache(namespaceMaps);
  const isOurs = (map: NamespaceMap): boolean => {
    const { metadata, spec } = virtualNode();
    return isOutgoing(map, metadata.namespace ?? '', spec.clusterID);
  };
  const map = (): NamespaceMap | undefined => maps.list().find(isOurs);
  return {
    map,
    mapping: (namespace) => (maps.isSynced() ? mappingOf(map(), namespace) : undefined),
    synced: (signal) => maps.synced(signal),
    follow: () =>
      maps.subscribe(({ before, after }) => {
        const subject = after ?? before;
        if (subject && isOurs(subject)) onChange(before, after);
      }),
  };
}
