/** ipam.liqo.io IP: an address behind this cluster, and the address by which peers reach it. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Cidr, Ipv4 } from '../definition/addresses.ts';
import { Conditions, ObjectReference } from '../definition/fields.ts';
import { ageColumn, defineKind, immutable } from '../definition/kind.ts';
import { networkNames } from './network-names.ts';
import { ServiceTemplate } from './rendered-gateway.ts';

const IpSpec = z.object({
  ip: Ipv4.meta(immutable('ip')).describe('The real address.'),
  networkRef: ObjectReference.optional().describe('Network that the address is taken from; default: external-cidr.'),
  serviceTemplate: ServiceTemplate.optional().describe('Publishes a Service with this address as its endpoint, too.'),
  masquerade: z
    .boolean()
    .optional()
    .describe('Hides callers behind the node, for hosts that have no route back to them.'),
});
type IpSpec = z.infer<typeof IpSpec>;

export const IpStatus = z.object({
  ip: Ipv4.meta(immutable('ip')).optional().describe('Address for peers.'),
  cidr: Cidr.meta(immutable('cidr')).optional().describe('Range that it was taken from.'),
  conditions: Conditions.optional().describe('Why no address was granted. Isthmus only.'),
});
export type IpStatus = z.infer<typeof IpStatus>;

export type Ip = KubeResource<IpSpec, IpStatus>;

export const ips = defineKind<Ip>({
  ...networkNames.ips,
  categories: ['liqo'],
  description: 'An address behind this cluster, and the address by which peers reach it.',
  writers: { object: 'a user or a controller', status: 'IP controller' },
  columns: [
    { name: 'Local IP', type: 'string', jsonPath: '.spec.ip' },
    { name: 'Remapped IP', type: 'string', jsonPath: '.status.ip' },
    { name: 'Remapped IP CIDR', type: 'string', jsonPath: '.status.cidr' },
    ageColumn,
  ],
  spec: IpSpec,
  status: IpStatus,
});
