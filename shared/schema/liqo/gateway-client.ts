/** networking.liqo.io GatewayClient: this end of the link to one peer, dialling the peer. Tenant namespace. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Mtu } from '../definition/addresses.ts';
import { Conditions, ObjectReference } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { EndpointStatus, InternalEndpoint, KeySecret } from './gateway-endpoint.ts';
import { networkNames } from './network-names.ts';

export const GatewayClientSpec = z.object({
  clientTemplateRef: ObjectReference.optional().describe('Template that the gateway is rendered from.'),
  mtu: Mtu.optional().describe('Of the tunnel, in bytes; at most what the path lets through is used.'),
  endpoint: EndpointStatus.optional().describe('Where the server of the peer is; absent: wait for it to dial.'),
  secretRef: KeySecret,
});
export type GatewayClientSpec = z.infer<typeof GatewayClientSpec>;

const GatewayClientStatus = z.object({
  clientRef: ObjectReference.optional().describe('What was rendered from the template.'),
  secretRef: ObjectReference.optional().describe('Secret in use.'),
  internalEndpoint: InternalEndpoint.optional(),
  conditions: Conditions.optional().describe(
    'Ready: what is missing, and which action on which side provides it. Isthmus only.',
  ),
});
type GatewayClientStatus = z.infer<typeof GatewayClientStatus>;

export type GatewayClient = KubeResource<GatewayClientSpec, GatewayClientStatus>;

export const gatewayClients = defineKind<GatewayClient>({
  ...networkNames.gatewayClients,
  shortNames: ['gwc', 'gwclient'],
  categories: ['liqo'],
  description: 'This end of the link to one peer, dialling the peer.',
  writers: { object: 'broker, liqoctl or a user', status: 'gateway controller' },
  columns: [
    { name: 'Template Kind', type: 'string', jsonPath: '.spec.clientTemplateRef.kind', priority: 1 },
    { name: 'Template Name', type: 'string', jsonPath: '.spec.clientTemplateRef.name' },
    { name: 'Template Namespace', type: 'string', jsonPath: '.spec.clientTemplateRef.namespace', priority: 1 },
    { name: 'IP', type: 'string', jsonPath: '.spec.endpoint.addresses[*]' },
    { name: 'Port', type: 'integer', jsonPath: '.spec.endpoint.port' },
    { name: 'Protocol', type: 'string', jsonPath: '.spec.endpoint.protocol', priority: 1 },
    { name: 'MTU', type: 'integer', jsonPath: '.spec.mtu', priority: 1 },
    ageColumn,
  ],
  spec: GatewayClientSpec,
  status: GatewayClientStatus,
  specPresence: 'defaulted',
});
