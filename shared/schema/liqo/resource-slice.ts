/** authentication.liqo.io ResourceSlice: a consumer's request for capacity and the provider's grant. Original on the consumer, copy on the provider. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import {
  AuthParams,
  Bytes,
  ClusterId,
  conditionOf,
  IngressType,
  LoadBalancerType,
  ResourceList,
  StorageType,
  StringMap,
} from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';

const ResourceSliceConditionType = z.enum(['Authentication', 'Resources']);
const ResourceSliceConditionStatus = z.enum(['Accepted', 'Denied']);
const ResourceSliceCondition = conditionOf(ResourceSliceConditionType, ResourceSliceConditionStatus);

/** Liqo does not know these and drops them. */
export const ProviderCondition = z.object({
  type: z.enum(['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure', 'Cordoned']),
  status: z.enum(['True', 'False']),
  reason: z.string(),
  message: z.string(),
});
export type ProviderCondition = z.infer<typeof ProviderCondition>;

const ResourceSliceSpec = z.object({
  consumerClusterID: ClusterId.optional().describe('Filled in by the slice controller of the consumer.'),
  providerClusterID: ClusterId.optional().describe('Filled in from the tenant namespace when missing.'),
  resources: ResourceList.optional().describe('What is asked for; may be changed at any time.'),
  class: z
    .string()
    .optional()
    .describe('Which decider at the provider is responsible; empty and `default` are the built-in class.'),
  csr: Bytes.optional().describe('PEM certificate signing request for the identity of this slice.'),
});
type ResourceSliceSpec = z.infer<typeof ResourceSliceSpec>;

const ResourceSliceStatus = z.object({
  conditions: z.array(ResourceSliceCondition).optional(),
  resources: ResourceList.optional().describe('What is granted.'),
  authParams: AuthParams.optional().describe('How the virtual node of this slice logs in.'),
  storageClasses: z.array(StorageType).optional().describe('Offered by the provider.'),
  ingressClasses: z.array(IngressType).optional().describe('Offered by the provider.'),
  loadBalancerClasses: z.array(LoadBalancerType).optional().describe('Offered by the provider.'),
  nodeLabels: StringMap.optional().describe('Labels for the virtual node.'),
  nodeSelector: StringMap.optional().describe('Added to every offloaded pod; only external classes use it.'),
  nodeConditions: z
    .array(ProviderCondition)
    .optional()
    .describe('State of the nodes behind the virtual node, and whether new pods are taken; the virtual node shows it.'),
});
type ResourceSliceStatus = z.infer<typeof ResourceSliceStatus>;

export type ResourceSlice = KubeResource<ResourceSliceSpec, ResourceSliceStatus>;

export const resourceSlices = defineKind<ResourceSlice>({
  group: 'authentication.liqo.io',
  version: 'v1beta1',
  kind: 'ResourceSlice',
  plural: 'resourceslices',
  namespaced: true,
  shortNames: ['rslice'],
  categories: ['liqo'],
  description: "A consumer's request for capacity (spec) and the provider's grant (status).",
  writers: {
    object: 'broker, liqoctl or a user; the slice controller of the consumer fills in IDs and csr',
    status: 'slice and class controllers of the provider, copied back by the replicator',
  },
  columns: [
    { name: 'Authentication', type: 'string', jsonPath: '.status.conditions[?(@.type=="Authentication")].status' },
    { name: 'Resources', type: 'string', jsonPath: '.status.conditions[?(@.type=="Resources")].status' },
    ageColumn,
  ],
  spec: ResourceSliceSpec,
  status: ResourceSliceStatus,
  specPresence: 'defaulted',
});
