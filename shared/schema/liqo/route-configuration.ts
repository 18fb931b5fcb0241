/** networking.liqo.io RouteConfiguration: routes and policy rules that nodes or gateways, picked by labels, add to their own. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Cidr, Ipv4 } from '../definition/addresses.ts';
import { ObjectReference } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { HostConditions } from './host-conditions.ts';
import { networkNames } from './network-names.ts';

const RouteEntry = z.object({
  dst: Cidr,
  src: Ipv4.optional(),
  gw: Ipv4.optional(),
  dev: z.string().optional(),
  onlink: z.boolean().optional(),
  scope: z.enum(['global', 'link', 'host', 'site', 'nowhere']).optional(),
  targetRef: ObjectReference.optional().describe('What the route is about; for people.'),
});

export const RouteRule = z.object({
  dst: Cidr.optional(),
  src: Cidr.optional(),
  iif: z.string().optional(),
  oif: z.string().optional(),
  fwmark: z.int().optional(),
  priority: z.int().optional().describe('Absent: the kernel picks.'),
  routes: z.array(RouteEntry),
  targetRef: ObjectReference.optional().describe('What the rule is about; for people.'),
});
export type RouteRule = z.infer<typeof RouteRule>;

export const RouteTable = z.object({
  name: z.string().min(1).describe('Hashed into the number of the kernel table.'),
  rules: z.array(RouteRule).min(1).describe('Packets that they match are looked up in this table.'),
  targetRef: ObjectReference.optional().describe('What the table is about; for people.'),
});
export type RouteTable = z.infer<typeof RouteTable>;

const RouteConfigurationSpec = z.object({ table: RouteTable.describe('One kernel table.') });
type RouteConfigurationSpec = z.infer<typeof RouteConfigurationSpec>;

const RouteConfigurationStatus = z.object({ conditions: HostConditions.optional() });
type RouteConfigurationStatus = z.infer<typeof RouteConfigurationStatus>;

export type RouteConfiguration = KubeResource<RouteConfigurationSpec, RouteConfigurationStatus>;

export const routeConfigurations = defineKind<RouteConfiguration>({
  ...networkNames.routeConfigurations,
  shortNames: ['rcnf', 'rcnfg', 'rcfg', 'routecfg'],
  categories: ['liqo'],
  description: 'Routes and policy rules that nodes or gateways, picked by its labels, add to their own.',
  writers: { object: 'a user', status: 'node processes' },
  columns: [ageColumn],
  spec: RouteConfigurationSpec,
  status: RouteConfigurationStatus,
});
