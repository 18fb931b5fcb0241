/** The selections by which the range controllers watch built-in kinds, without what none of them reads. */
import type { Cache, Caches } from '#agent/kube/types.ts';
import { nodes } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';

/** Where a node is and what it gives to its pods: heartbeats change nothing here. */
const addressesOnly = ({ apiVersion, kind, metadata, spec, status }: Node): Node =>
  ({
    apiVersion,
    kind,
    metadata: { name: metadata.name, uid: metadata.uid },
    spec: { podCIDR: spec?.podCIDR, podCIDRs: spec?.podCIDRs },
    status: { addresses: status?.addresses },
  }) as Node;
export const rangeNodes = (caches: Caches): Cache<Node> =>
  caches.cache(nodes, { labelSelector: `${label.type}!=${virtualNodeType}`, transform: addressesOnly });
