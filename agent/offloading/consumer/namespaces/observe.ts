/** Gathers from the caches what `decide` needs to know about one NamespaceOffloading. Reads nothing else. */

import type { Cache } from '#kube/model/types.ts';
import { timestamp } from '#kube/writes/conditions.ts';
import type { Namespace, Node } from '#shared/domain/kube-object.ts';
import { annotation, finalizer, label, namespaceOffloadingName, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import type { NodeFacts } from '#shared/domain/node-selector.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import type { ForeignCluster } from '#shared/schema/liqo/foreign-cluster.ts';
import type { NamespaceMap } from '#shared/schema/liqo/namespace-map.ts';
import type { NamespaceOffloading } from '#shared/schema/liqo/namespace-offloading.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import type { MapFacts, Observed, ProviderFacts } from './decide.ts';
import { holderOf, namingProblem, remoteNameOf } from './remote-name.ts';

export interface OffloadingCaches {
  readonly offloadings: Cache<NamespaceOffloading>;
  readonly maps: Cache<NamespaceMap>;
  readonly virtualNodes: Cache<VirtualNode>;
  readonly nodes: Cache<Node>;
  readonly namespaces: Cache<Namespace>;
  readonly foreignClusters: Cache<ForeignCluster>;
}

/** The Node that a VirtualNode would get, for selectors on nodes that are not made (yet). */
const syntheticNode = ({ metadata, spec }: VirtualNode): NodeFacts => ({
  name: metadata.name,
  labels: {
    ...spec.labels,
    [label.type]: virtualNodeType,
    [label.remoteClusterId]: spec.clusterID,
    [label.storageAvailable]: String((spec.storageClasses ?? []).length > 0),
  },
});

/** The original maps of this cluster, never the copies that other consumers put here. */
export const isOwnMap = ({ metadata }: NamespaceMap): boolean =>
  metadata.labels?.[label.replication] === 'true' && metadata.labels[label.replicated] !== 'true';

const providerOf = ({ metadata }: NamespaceMap): string => metadata.labels?.[label.remoteId] ?? metadata.name;

/** `maps`: from the cache, or read from the API server where cache lag would do harm. */
export function observe(
  caches: OffloadingCaches,
  maps: readonly NamespaceMap[],
  namespace: string,
  clusterId: string,
  now: number,
): Observed | undefined {
  const offloading = caches.offloadings.get({ namespace, name: namespaceOffloadingName });
  if (!offloading) return undefined;
  const local = caches.namespaces.get({ name: namespace });
  const remoteName = remoteNameOf(namespace, offloading.spec, clusterId);
  const refusal = refusalOf(caches, maps.filter(isOwnMap), offloading, clusterId, local);
  return {
    offloading,
    remoteName,
    namespace: {
      exists: local !== undefined,
      terminating: local?.metadata.deletionTimestamp !== undefined,
      labelled: local?.metadata.labels?.[label.schedulingEnabled] === 'true',
    },
    providers: providers(caches, maps.filter(isOwnMap), namespace),
    ...(refusal && { refusal }),
    hasFinalizer: offloading.metadata.finalizers?.includes(finalizer.namespaceOffloading) ?? false,
    now: timestamp(now),
  };
}

function refusalOf(
  { offloadings }: OffloadingCaches,
  own: readonly NamespaceMap[],
  { metadata, spec }: NamespaceOffloading,
  clusterId: string,
  local: Namespace | undefined,
): Observed['refusal'] {
  const namespace = metadata.namespace ?? '';
  const naming = namingProblem(namespace, spec, clusterId, local?.metadata.labels);
  if (naming) return { reason: 'InvalidNamespaceName', message: naming.message };
  const remote = remoteNameOf(namespace, spec, clusterId);
  const holder = holderOf(remote, offloadings.list(), clusterId, (ns) =>
    own.some((map) => ownMember(map.spec?.desiredMapping, ns) === remote),
  );
  if (holder === undefined || holder === namespace) return undefined;
  return {
    reason: 'NameConflict',
    message: `namespace ${holder} of this cluster has the remote name ${remote} already: choose another with SelectedName, or unoffload ${holder}`,
  };
}

function providers(caches: OffloadingCaches, own: readonly NamespaceMap[], namespace: string): ProviderFacts[] {
  const maps = new Map(own.map((map) => [providerOf(map), map]));
  const virtualNodes = caches.virtualNodes.list();
  const dead = new Set(
    caches.foreignClusters
      .list()
      .filter(({ metadata }) => metadata.annotations?.[annotation.permanentlyUnreachable] === 'true')
      .map(({ spec }) => spec.clusterID),
  );
  return [...new Set([...maps.keys(), ...virtualNodes.map(({ spec }) => spec.clusterID)])].sort().map((id) => {
    const map = maps.get(id);
    const virtual = virtualNodes.filter(({ spec }) => spec.clusterID === id);
    return {
      id,
      dead: dead.has(id),
      nodes: virtual.map((node) => factsOf(caches.nodes.get({ name: node.metadata.name }), node)),
      ...(map && { map: mapFacts(map, namespace) }),
    };
  });
}

/** A Node of that name that is not a virtual one of this provider says nothing about the provider. */
function factsOf(node: Node | undefined, virtual: VirtualNode): NodeFacts {
  const labels = node?.metadata.labels ?? {};
  if (!node || labels[label.remoteClusterId] !== virtual.spec.clusterID) return syntheticNode(virtual);
  return { name: node.metadata.name, labels };
}

function mapFacts({ metadata, spec, status }: NamespaceMap, namespace: string): MapFacts {
  const desired = ownMember(spec?.desiredMapping, namespace);
  const current = ownMember(status?.currentMapping, namespace);
  return {
    ref: { namespace: metadata.namespace ?? '', name: metadata.name },
    deleting: metadata.deletionTimestamp !== undefined,
    ...(desired !== undefined && { desired }),
    ...(current && { current }),
  };
}
