/**
 * What a VkOptionsTemplate means here, where all virtual nodes run inside the agent: defaults of the VirtualNodes that name it, at any time
 * and not only when they are made. How objects are reflected is read from it by `reflection`.
 */
import type { ObjectRef } from '#shared/domain/kube-object.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { defaultOptionsTemplate, type VkOptionsTemplate } from '#shared/schema/liqo/vk-options-template.ts';

/** The template that a VirtualNode names, or else the one of the installation, which need not exist. */
export function optionsTemplateRef({ metadata, spec }: VirtualNode, systemNamespace: string): Required<ObjectRef> {
  const { name, namespace } = spec.vkOptionsTemplateRef ?? {};
  if (!name) return { namespace: systemNamespace, name: defaultOptionsTemplate };
  return { namespace: namespace || (metadata.namespace ?? systemNamespace), name };
}

const union = (a: readonly string[] = [], b: readonly string[] = []): string[] => [...new Set([...a, ...b])].sort();

/** The VirtualNode with everything that its template adds. What the VirtualNode says itself wins; keys that are not reflected add up. */
export function withOptions(virtualNode: VirtualNode, template: VkOptionsTemplate | undefined): VirtualNode {
  if (!template) return virtualNode;
  const { spec } = virtualNode;
  const { createNode, disableNetworkCheck, nodeExtraLabels, nodeExtraAnnotations } = template.spec;
  const labelsNotReflected = union(template.spec.labelsNotReflected, spec.offloadingPatch?.labelsNotReflected);
  const annotationsNotReflected = union(
    template.spec.annotationsNotReflected,
    spec.offloadingPatch?.annotationsNotReflected,
  );
  return {
    ...virtualNode,
    spec: {
      ...spec,
      createNode: spec.createNode ?? createNode,
      disableNetworkCheck: spec.disableNetworkCheck ?? disableNetworkCheck,
      ...(nodeExtraLabels || spec.labels ? { labels: { ...nodeExtraLabels, ...spec.labels } } : {}),
      ...(nodeExtraAnnotations || spec.annotations
        ? { annotations: { ...nodeExtraAnnotations, ...spec.annotations } }
        : {}),
      offloadingPatch: { ...spec.offloadingPatch, labelsNotReflected, annotationsNotReflected },
    },
  };
}
