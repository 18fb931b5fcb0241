/** offloading.liqo.io VkOptionsTemplate: options that VirtualNodes take their defaults from. */
import type { V1ResourceRequirements } from '@kubernetes/client-node';
import * as z from 'zod';
import type { KubeResource, Wire } from '#shared/domain/kube-object.ts';
import { LocalObjectReference, opaque, StringMap, Toleration } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';

const ReflectionType = z.enum(['DenyList', 'AllowList', 'CustomLiqo']);

/** Keys of `reflectorsConfig`. */
export const reflectedResources = [
  'pod',
  'service',
  'endpointslice',
  'ingress',
  'configmap',
  'secret',
  'serviceaccount',
  'persistentvolumeclaim',
  'event',
] as const;

export const VkOptionsTemplateSpec = z.object({
  createNode: z.boolean(),
  disableNetworkCheck: z.boolean(),
  containerImage: z.string().describe('Image of the virtual kubelet in Liqo; unused by Isthmus.'),
  metricsEnabled: z.boolean(),
  metricsAddress: z.string().optional(),
  labelsNotReflected: z.array(z.string()).optional().describe('Exact keys.'),
  annotationsNotReflected: z.array(z.string()).optional().describe('Exact keys.'),
  reflectorsConfig: z
    .record(z.string(), z.object({ workers: z.int().min(0), type: ReflectionType.optional() }))
    .optional()
    .describe(`Key: ${reflectedResources.join(', ')}.`),
  resources: opaque<Wire<V1ResourceRequirements>>().optional(),
  extraArgs: z.array(z.string()).optional(),
  extraAnnotations: StringMap.optional().describe('For the pods of the virtual kubelet.'),
  extraLabels: StringMap.optional().describe('For the pods of the virtual kubelet.'),
  nodeExtraAnnotations: StringMap.optional().describe('For the Node.'),
  nodeExtraLabels: StringMap.optional().describe('For the Node.'),
  replicas: z.int32().min(0).optional(),
  imagePullSecrets: z.array(LocalObjectReference).optional(),
  pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).optional(),
  tolerations: z.array(Toleration).optional(),
});
export type VkOptionsTemplateSpec = z.infer<typeof VkOptionsTemplateSpec>;

export type VkOptionsTemplate = KubeResource<VkOptionsTemplateSpec>;

/** In the system namespace; need not exist. */
export const defaultOptionsTemplate = 'virtual-kubelet-default';

export const vkOptionsTemplates = defineKind<VkOptionsTemplate>({
  group: 'offloading.liqo.io',
  version: 'v1beta1',
  kind: 'VkOptionsTemplate',
  plural: 'vkoptionstemplates',
  namespaced: true,
  shortNames: ['vkot', 'vkopt'],
  categories: ['liqo'],
  description: 'Options that VirtualNodes take their defaults from.',
  writers: { object: 'the installation (`virtual-kubelet-default`) or a user' },
  columns: [ageColumn],
  spec: VkOptionsTemplateSpec,
});
