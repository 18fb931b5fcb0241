/** What the provider says about its nodes, and whether it drains them, read from the slice that a virtual node was made of. */
import { conditionOf } from '#agent/model/slice-roles.ts';
import { drainedReason } from '#agent/peering/slices/status.ts';
import type { Caches } from '#kube/model/types.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import type { ObjectRef } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type ProviderCondition, type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';

export interface ProviderState {
  /** Undefined: the node has no slice, or the provider says nothing. */
  current(): readonly ProviderCondition[] | undefined;
  /** Calls back when it has changed; returns the function that ends it. */
  follow(): () => void;
}

/** Undefined: it was made by hand. */
export function sliceOf(node: VirtualNode): ObjectRef | undefined {
  const name = ownerName(resourceSlices, node) ?? node.metadata.labels?.[label.resourceSliceName];
  return name === undefined ? undefined : { namespace: node.metadata.namespace ?? '', name };
}

/** The provider takes back what it granted for a while. */
export const isDrained = (slice: ResourceSlice | undefined): boolean =>
  slice !== undefined && conditionOf(slice, 'Resources')?.reason === drainedReason;

export function createProviderState(
  caches: Caches,
  virtualNode: () => VirtualNode,
  onChange: () => void,
): ProviderState {
  const slices = caches.cache(resourceSlices);
  const refOfSlice = () => sliceOf(virtualNode());
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
