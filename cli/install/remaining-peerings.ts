/** What still ties a cluster to its peers, so that an agent is not taken away under it. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { retryReads } from '#cli/cluster/retry.ts';
import type { CliIo } from '#cli/output/io.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { keyOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkAnnotation } from '#shared/domain/network-keys.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';

/** Kinds of which every object belongs to a peering or an offloaded namespace. */
const tying: readonly ResourceType[] = [
  resourceSlices,
  virtualNodes,
  tenants,
  identities,
  namespaceOffloadings,
  networkKinds.configurations,
  networkKinds.gatewayServers,
  networkKinds.gatewayClients,
];
/** Made by controllers for peers and by users; those of the installation itself are marked. */
const granted: readonly ResourceType[] = [networkKinds.networks, networkKinds.ips];

const isOfInstallation = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.[networkAnnotation.preinstalled] !== undefined || metadata.labels?.[label.managed] === 'true';

/** `milan (networking, offloading)`; undefined when nothing is shared with it any more. Pure. */
function sharedWith({ spec, status }: ForeignCluster): string | undefined {
  const { networking, authentication, offloading } = status?.modules ?? {};
  const on = Object.entries({ networking, authentication, offloading })
    .filter(([, module]) => module?.enabled === true)
    .map(([name]) => name);
  return on.length === 0 ? undefined : `${spec.clusterID} (${on.join(', ')})`;
}

export interface Remaining {
  /** One text for each peer. */
  readonly peers: readonly string[];
  /** `KIND NAMESPACE/NAME`. */
  readonly objects: readonly string[];
}

const named = (type: ResourceType, objects: readonly KubeObject[]): string[] =>
  objects.map((object) => `${type.kind} ${keyOf(object)}`).sort();

/** Kinds that the cluster does not know count as empty. */
export async function remainingPeerings(io: CliIo, kube: KubeClient): Promise<Remaining> {
  const list = (type: ResourceType): Promise<KubeObject[]> => retryReads(io, kube).list<KubeObject>(type);
  const foreign = (await list(foreignClusters)) as ForeignCluster[];
  const tied = await Promise.all(tying.map(async (type) => named(type, await list(type))));
  const users = await Promise.all(
    granted.map(async (type) =>
      named(
        type,
        (await list(type)).filter((one) => !isOfInstallation(one) && (one.metadata.finalizers?.length ?? 0) > 0),
      ),
    ),
  );
  return {
    peers: foreign.flatMap((one) => sharedWith(one) ?? []).sort(),
    objects: [...tied, ...users].flat(),
  };
}
