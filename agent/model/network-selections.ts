/** The selections by which the range controllers watch built-in kinds, without what none of them reads. */
import type { Cache, CacheOptions, Caches } from '#kube/model/types.ts';
import { nodes } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { networkAnnotation } from '#shared/domain/network-keys.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';

const read = [networkAnnotation.preinstalled, networkAnnotation.servedBy];

/** What people and tools note on an IP for themselves is not read here; there may be one per offloaded pod. */
function slimIp({ metadata: { annotations, ...metadata }, ...ip }: Ip): Ip {
  const kept = read.flatMap((key) => (annotations?.[key] === undefined ? [] : [[key, annotations[key]] as const]));
  return { ...ip, metadata: { ...metadata, ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }) } };
}

/** Everything in this process that reads addresses asks by this, so that 10,000 of them are kept once. */
export const rangeIps = (caches: Caches, indexes: CacheOptions<Ip>['indexes'] = {}): Cache<Ip> =>
  caches.cache(networkKinds.ips, { transform: slimIp, indexes });

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
