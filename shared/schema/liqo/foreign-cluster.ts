/** core.liqo.io ForeignCluster: the computed summary of one peer. It holds no desired state. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { ClusterId, conditionOf } from '../definition/fields.ts';
import { ageColumn, defineKind, immutable } from '../definition/kind.ts';

export const ForeignClusterRole = z.enum(['Consumer', 'Provider', 'ConsumerAndProvider', 'Unknown']);
export type ForeignClusterRole = z.infer<typeof ForeignClusterRole>;

export const ForeignClusterConditionType = z.enum([
  'APIServerStatus',
  'NetworkConnectionStatus',
  'NetworkGatewayServerStatus',
  'NetworkGatewayClientStatus',
  'NetworkGatewayPresence',
  'NetworkConfigurationStatus',
  'AuthIdentityControlPlaneStatus',
  'AuthTenantStatus',
  'OffloadingVirtualNodeStatus',
  'OffloadingNodeStatus',
]);
export type ForeignClusterConditionType = z.infer<typeof ForeignClusterConditionType>;

export const ForeignClusterConditionStatus = z
  .enum(['None', 'Pending', 'Established', 'Error', 'Ready', 'NotReady', 'SomeNotReady'])
  .default('None');
export type ForeignClusterConditionStatus = z.infer<typeof ForeignClusterConditionStatus>;

export const ForeignClusterCondition = conditionOf(ForeignClusterConditionType, ForeignClusterConditionStatus);
export type ForeignClusterCondition = z.infer<typeof ForeignClusterCondition>;

export const ForeignClusterModule = z.object({
  enabled: z.boolean(),
  conditions: z.array(ForeignClusterCondition).optional(),
});
export type ForeignClusterModule = z.infer<typeof ForeignClusterModule>;

const ForeignClusterSpec = z.object({
  clusterID: ClusterId.meta(immutable('clusterID')).describe('Cluster ID of the peer.'),
});
type ForeignClusterSpec = z.infer<typeof ForeignClusterSpec>;

export const ForeignClusterStatus = z.object({
  observedGeneration: z.int().optional(),
  role: ForeignClusterRole.default('Unknown').describe('Role of the foreign cluster, not of this one.'),
  modules: z
    .object({
      networking: ForeignClusterModule,
      authentication: ForeignClusterModule,
      offloading: ForeignClusterModule,
    })
    .describe('One summary for each part of a peering.'),
  apiServerUrl: z.string().optional().describe('API server of the foreign cluster.'),
  foreignProxyUrl: z.string().optional().describe('Proxy on the way to that API server.'),
  tenantNamespace: z
    .object({ local: z.string().optional(), remote: z.string().optional() })
    .optional()
    .describe('Namespaces of this peering, here and there.'),
  conditions: z.array(ForeignClusterCondition).optional().describe('Only APIServerStatus.'),
});
export type ForeignClusterStatus = z.infer<typeof ForeignClusterStatus>;

export type ForeignCluster = KubeResource<ForeignClusterSpec, ForeignClusterStatus>;

export const foreignClusters = defineKind<ForeignCluster>({
  group: 'core.liqo.io',
  version: 'v1beta1',
  kind: 'ForeignCluster',
  plural: 'foreignclusters',
  namespaced: false,
  shortNames: ['fc'],
  categories: ['liqo'],
  description:
    'Summary of one peer. Users write nothing here but the annotation liqo.io/foreign-cluster-permanently-unreachable.',
  writers: { object: 'foreign cluster controller', status: 'foreign cluster controller' },
  columns: [
    { name: 'Role', type: 'string', jsonPath: '.status.role' },
    // As Liqo showed them before its version 1; Role stands for the two directions of then. Ours: the type is no field of the object.
    { name: 'Type', type: 'string', jsonPath: '.metadata.annotations.isthmus\\.dev/peering-type' },
    {
      name: 'Networking',
      type: 'string',
      jsonPath: '.status.modules.networking.conditions[?(@.type=="NetworkConnectionStatus")].status',
    },
    // The API server prints the first; what is not Ready stands first.
    { name: 'Authentication', type: 'string', jsonPath: '.status.modules.authentication.conditions[*].status' },
    { name: 'Offloading', type: 'string', jsonPath: '.status.modules.offloading.conditions[*].status' },
    { name: 'ClusterID', type: 'string', jsonPath: '.spec.clusterID', priority: 1 },
    // Ours: which way the peering was made.
    { name: 'Owner', type: 'string', jsonPath: '.metadata.annotations.isthmus\\.dev/owner', priority: 1 },
    ageColumn,
  ],
  spec: ForeignClusterSpec,
  status: ForeignClusterStatus,
});
