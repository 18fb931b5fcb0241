/** Reads the objects that `isthmus status` is made of. Kinds that a cluster does not have are empty. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { agentName } from '#cli/install/manifests.ts';
import { configMaps, deployments, nodes, pods } from '#shared/domain/core-kinds.ts';
import { clusterIdConfigMap, label, systemNamespace, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import type { ClusterObjects } from './summary.ts';

export async function readObjects(kube: KubeClient): Promise<ClusterObjects> {
  const within = { namespace: systemNamespace };
  const [kubernetes, idMap, agent, broker, networks, peers, connections, borrowed, lent, offloadings, virtual] =
    await Promise.all([
      kube.version(),
      kube.get(configMaps, { ...within, name: clusterIdConfigMap }),
      kube.get(deployments, { ...within, name: agentName }),
      kube.get(brokerLinks, { name: 'broker' }),
      kube.list(networkKinds.networks, undefined, systemNamespace),
      kube.list(foreignClusters),
      kube.list(networkKinds.connections),
      kube.list(virtualNodes),
      kube.list(quotas),
      kube.list(namespaceOffloadings),
      kube.list(nodes, `${label.type}=${virtualNodeType}`),
    ]);
  const names = new Set(virtual.map(({ metadata }) => metadata.name));
  const perNamespace = offloadings.map(({ metadata }) => kube.list(pods, undefined, metadata.namespace));
  const all = (await Promise.all(perNamespace)).flat();
  return {
    clusterId: idMap?.data?.CLUSTER_ID,
    kubernetes,
    agent,
    broker,
    networks,
    peers,
    connections,
    virtualNodes: borrowed,
    quotas: lent,
    offloadings,
    pods: all.filter(({ spec }) => names.has(spec?.nodeName ?? '')),
  };
}
