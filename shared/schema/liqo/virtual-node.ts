/** offloading.liqo.io VirtualNode: a provider as one Node of this consumer. */
import type { V1DeploymentSpec } from '@kubernetes/client-node';
import * as z from 'zod';
import type { KubeResource, Wire } from '#shared/domain/kube-object.ts';
import {
  ClusterId,
  ContainerImage,
  conditionOf,
  IngressType,
  LoadBalancerType,
  LocalObjectReference,
  NodeAffinity,
  ObjectReference,
  opaque,
  ResourceList,
  StorageType,
  StringMap,
  Taint,
  Toleration,
} from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';

const VirtualNodeConditionType = z.enum(['VirtualKubelet', 'Node']);
const VirtualNodeConditionStatus = z.enum(['None', 'Running', 'Creating', 'Draining', 'Deleting']).default('None');
export const VirtualNodeCondition = conditionOf(VirtualNodeConditionType, VirtualNodeConditionStatus);
export type VirtualNodeCondition = z.infer<typeof VirtualNodeCondition>;

export const OffloadingPatch = z.object({
  annotationsNotReflected: z.array(z.string()).optional().describe('Exact keys.'),
  labelsNotReflected: z.array(z.string()).optional().describe('Exact keys.'),
  nodeSelector: StringMap.optional().describe('Added to every remote pod.'),
  tolerations: z.array(Toleration).optional().describe('Appended to those of every remote pod.'),
  affinity: z
    .object({ nodeAffinity: NodeAffinity.optional() })
    .optional()
    .describe('Merged into that of every remote pod.'),
  runtimeClassName: z.string().optional().describe('Of remote pods that name none themselves.'),
});
export type OffloadingPatch = z.infer<typeof OffloadingPatch>;

const DeploymentTemplate = z.object({
  metadata: opaque<{ name?: string; namespace?: string; labels?: Record<string, string> }>().optional(),
  spec: opaque<Wire<V1DeploymentSpec>>().optional(),
});

export const VirtualNodeSpec = z.object({
  clusterID: ClusterId.describe('Cluster ID of the provider.'),
  template: DeploymentTemplate.optional().describe(
    'Deployment of the virtual kubelet in Liqo. Kept as written; in Isthmus all virtual nodes run in the agent.',
  ),
  offloadingPatch: OffloadingPatch.optional().describe('Changes made to what is offloaded through this node.'),
  createNode: z.boolean().optional().describe('False: no Node, but services, configuration and so on are reflected.'),
  disableNetworkCheck: z.boolean().optional().describe('True: the Node is Ready without a working network link.'),
  kubeconfigSecretRef: LocalObjectReference.optional().describe('Secret with the identity towards the provider.'),
  images: z.array(ContainerImage).optional().describe('Copied to the status of the Node.'),
  resourceQuota: z
    .object({
      hard: ResourceList.optional(),
      scopes: z.array(z.string()).optional(),
      scopeSelector: opaque<object>().optional(),
    })
    .optional()
    .describe('Only `hard` is used: the capacity of the Node.'),
  labels: StringMap.optional().describe('Copied to the Node.'),
  annotations: StringMap.optional().describe('Copied to the Node.'),
  taints: z.array(Taint).optional().describe('Added to those of the Node.'),
  storageClasses: z.array(StorageType).optional().describe('Offered by the provider.'),
  ingressClasses: z.array(IngressType).optional().describe('Offered by the provider.'),
  loadBalancerClasses: z.array(LoadBalancerType).optional().describe('Offered by the provider.'),
  vkOptionsTemplateRef: ObjectReference.optional().describe(
    'Options of the virtual kubelet; default: the default template.',
  ),
});
export type VirtualNodeSpec = z.infer<typeof VirtualNodeSpec>;

const VirtualNodeStatus = z.object({ conditions: z.array(VirtualNodeCondition).optional() });
type VirtualNodeStatus = z.infer<typeof VirtualNodeStatus>;

export type VirtualNode = KubeResource<VirtualNodeSpec, VirtualNodeStatus>;

const conditionStatus = (type: string): string => `.status.conditions[?(@.type=="${type}")].status`;

export const virtualNodes = defineKind<VirtualNode>({
  group: 'offloading.liqo.io',
  version: 'v1beta1',
  kind: 'VirtualNode',
  plural: 'virtualnodes',
  namespaced: true,
  shortNames: ['vn', 'vnode', 'virno', 'vno'],
  categories: ['liqo'],
  description: 'A provider as one Node of this consumer.',
  writers: {
    object: 'virtual node creator (from a ResourceSlice) or a user; the webhook fills in defaults',
    status: 'virtual node controller',
  },
  columns: [
    { name: 'ClusterID', type: 'string', jsonPath: '.spec.clusterID' },
    { name: 'Create Node', type: 'boolean', jsonPath: '.spec.createNode' },
    ageColumn,
    { name: 'Node', type: 'string', jsonPath: conditionStatus('Node'), priority: 1 },
    { name: 'VirtualKubelet', type: 'string', jsonPath: conditionStatus('VirtualKubelet'), priority: 1 },
  ],
  spec: VirtualNodeSpec,
  status: VirtualNodeStatus,
});
