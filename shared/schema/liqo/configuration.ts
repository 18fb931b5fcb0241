/** networking.liqo.io Configuration: the ranges of one peer, and the ranges by which this cluster knows them. Tenant namespace. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Cidr } from '../definition/addresses.ts';
import { Conditions } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { networkNames } from './network-names.ts';

export const ClusterCidrs = z.object({
  pod: z.array(Cidr).default([]),
  external: z.array(Cidr).default([]).describe('Only the first one is used to expose addresses.'),
});
export type ClusterCidrs = z.infer<typeof ClusterCidrs>;
export const ClusterConfig = z.object({ cidr: ClusterCidrs.prefault({}) });
export type ClusterConfig = z.infer<typeof ClusterConfig>;

const ConfigurationSpec = z.object({
  local: ClusterConfig.optional().describe('Ranges of this cluster; filled in when absent.'),
  remote: ClusterConfig.describe('Ranges that the peer really has.'),
});
type ConfigurationSpec = z.infer<typeof ConfigurationSpec>;

export const ConfigurationStatus = z.object({
  remote: ClusterConfig.optional().describe('What this cluster calls them; index i belongs to index i of the spec.'),
  conditions: Conditions.optional().describe('NetworkCIDRsConfigured.'),
});
export type ConfigurationStatus = z.infer<typeof ConfigurationStatus>;

export type Configuration = KubeResource<ConfigurationSpec, ConfigurationStatus>;

export const configurations = defineKind<Configuration>({
  ...networkNames.configurations,
  shortNames: ['conf'],
  categories: ['liqo'],
  description: 'The ranges of one peer, and the ranges by which this cluster knows them.',
  writers: { object: 'broker, liqoctl or a user', status: 'configuration controller' },
  columns: [
    { name: 'Desired Pod CIDR', type: 'string', jsonPath: '.spec.remote.cidr.pod' },
    { name: 'Remapped Pod CIDR', type: 'string', jsonPath: '.status.remote.cidr.pod' },
    { name: 'Desired External CIDR', type: 'string', jsonPath: '.spec.remote.cidr.external', priority: 1 },
    { name: 'Remapped External CIDR', type: 'string', jsonPath: '.status.remote.cidr.external', priority: 1 },
    ageColumn,
    { name: 'ClusterID', type: 'string', jsonPath: '.metadata.labels.liqo\\.io/remote-cluster-id', priority: 1 },
  ],
  spec: ConfigurationSpec,
  status: ConfigurationStatus,
});
