/** The NamespaceMap of a provider: there as long as the provider has a virtual node. */

import type { Cache, KubeApi } from '#kube/model/types.ts';
import { createUnlessThere } from '#kube/writes/write-if-changed.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type NamespaceMap, namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { type VirtualNode, virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { isOutgoing } from './mappings.ts';

const newNamespaceMap = ({ metadata, spec }: VirtualNode): NamespaceMap => ({
  apiVersion: 'offloading.liqo.io/v1beta1',
  kind: 'NamespaceMap',
  metadata: {
    name: spec.clusterID,
    namespace: metadata.namespace ?? '',
    labels: {
      [label.managed]: 'true',
      [label.remoteClusterId]: spec.clusterID,
      [label.replication]: 'true',
      [label.remoteId]: spec.clusterID,
    },
  },
  spec: {},
});

/** False: one from before is still on its way out; its removal will be heard of. */
export async function ensureNamespaceMap(
  virtualNode: VirtualNode,
  cache: Cache<NamespaceMap>,
  api: KubeApi,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace = '' } = virtualNode.metadata;
  const known = cache.list().find((map) => isOutgoing(map, namespace, virtualNode.spec.clusterID));
  if (known) return known.metadata.deletionTimestamp === undefined;
  await createUnlessThere(api, namespaceMaps, newNamespaceMap(virtualNode), signal);
  return true;
}

/** Removes the map when no other VirtualNode of its provider is left. Callers of one process must not overlap: see `finish`. */
export async function releaseNamespaceMap(virtualNode: VirtualNode, api: KubeApi, signal: AbortSignal): Promise<void> {
  const { namespace = '', uid } = virtualNode.metadata;
  const { clusterID } = virtualNode.spec;
  const others = await api.list(virtualNodes, { namespace }, signal);
  if (others.some((other) => other.metadata.uid !== uid && other.spec.clusterID === clusterID)) return;
  for (const map of await api.list(namespaceMaps, { namespace }, signal)) {
    if (!isOutgoing(map, namespace, clusterID) || map.metadata.deletionTimestamp !== undefined) continue;
    const { name, uid: mapUid } = map.metadata;
    await api.delete(namespaceMaps, { namespace, name }, mapUid === undefined ? {} : { uid: mapUid }, signal);
  }
}
