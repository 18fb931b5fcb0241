/** What the provider says about its nodes, read from the slice that a virtual node was made of. */
import type { Caches } from '#kube/model/types.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type ProviderCondition, type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';

export interface ProviderState {
  /** Undefined: the node has no slice, or the provider says nothing. */
  current(): readonly ProviderCondition[] | undefined;
  /** Calls back when it has changed; returns the function that ends it. */
  follow(): () => void;
}

export function createProviderState(
  caches: Caches,
  virtualNode: () => VirtualNode,
  onChange: () => void,
): ProviderState {
  const slices = caches.cache(resourceSlices);
  const refOfSlice = () => {
    const node = virtualNode();
    const name = ownerName(resourceSlices, node) ?? node.metadata.labels?.[label.resourceSliceName];
    return name === undefined ? undefined : { namespace: node.metadata.namespace ?? '', name };
  };
  const isOfNode = (slice: ResourceSlice | undefined): boolean => {
    const ref = refOfSlice();
    return slice?.metadata.name === ref?.name && slice?.metadata.namespace === ref?.namespace;
  };
  return {
    current: () => {
      const ref = refOfSlice();
      return ref === undefined ? undefined : slices.get(ref)?.status?.nodeConditions;
    },
    follow: () =>
      slices.subscribe(({ before, after }) => {
        const changed = !sameContent(before?.status?.nodeConditions, after?.status?.nodeConditions);
        if (changed && isOfNode(after ?? before)) onChange();
      }),
  };
}
