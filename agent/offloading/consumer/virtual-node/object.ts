/** The VirtualNode that an accepted slice becomes. */
import type { Applied } from '#kube/model/types.ts';
import { ownerOf } from '#kube/writes/owner-references.ts';
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { resourceTexts } from '#shared/domain/quantity.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type VirtualNode, virtualNodes } from '#shared/schema/liqo/virtual-node.ts';

export function buildVirtualNode(
  slice: ResourceSlice,
  provider: string,
  kubeconfigSecret: string,
  believed: Readonly<Record<string, string>>,
): Applied<VirtualNode> {
  const { resources, storageClasses, ingressClasses, loadBalancerClasses, nodeSelector } = slice.status ?? {};
  return {
    apiVersion: apiVersionOf(virtualNodes),
    kind: virtualNodes.kind,
    metadata: {
      name: slice.metadata.name,
      namespace: slice.metadata.namespace ?? '',
      labels: {
        [label.managed]: 'true',
        [label.remoteClusterId]: provider,
        [label.resourceSliceName]: slice.metadata.name,
      },
      ownerReferences: [ownerOf(resourceSlices, slice)],
    },
    spec: {
      clusterID: provider,
      kubeconfigSecretRef: { name: kubeconfigSecret },
      resourceQuota: { hard: resourceTexts(resources) },
      ...(storageClasses === undefined ? {} : { storageClasses }),
      ...(ingressClasses === undefined ? {} : { ingressClasses }),
      ...(loadBalancerClasses === undefined ? {} : { loadBalancerClasses }),
      ...(Object.keys(believed).length === 0 ? {} : { labels: { ...believed } }),
      ...(nodeSelector === undefined ? {} : { offloadingPatch: { nodeSelector } }),
    },
  };
}
