/** networking.liqo.io GatewayServer: this end of the link to one peer, where the peer dials. Tenant namespace. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Mtu } from '../definition/addresses.ts';
import { Conditions, ObjectReference, StringMap } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { EndpointStatus, InternalEndpoint, KeySecret, ServerEndpoint } from './gateway-endpoint.ts';
import { networkNames } from './network-names.ts';

export const GatewayServerSpec = z.object({
  serverTemplateRef: ObjectReference.optional().describe('Template that the gateway is rendered from.'),
  mtu: Mtu.optional().describe('Of the tunnel, in bytes; at most what the path lets through is used.'),
  endpoint: ServerEndpoint.describe('How the gateway is exposed.'),
  secretRef: KeySecret,
  serviceAnnotations: StringMap.optional().describe("Merged over those of the template's Service."),
  serviceLabels: StringMap.optional().describe("Merged over those of the template's Service."),
});
export type GatewayServerSpec = z.infer<typeof GatewayServerSpec>;

const GatewayServerStatus = z.object({
  serverRef: ObjectReference.optional().describe('What was rendered from the template.'),
  endpoint: EndpointStatus.optional().describe('Where a client can reach this gateway.'),
  secretRef: ObjectReference.optional().describe('Secret in use.'),
  internalEndpoint: InternalEndpoint.optional(),
  conditions: Conditions.optional().describe(
    'Ready: what is missing, and which action on which side provides it. Isthmus only.',
  ),
});
type GatewayServerStatus = z.infer<typeof GatewayServerStatus>;

export type GatewayServer = KubeResource<GatewayServerSpec, GatewayServerStatus>;

export const gatewayServers = defineKind<GatewayServer>({
  ...networkNames.gatewayServers,
  shortNames: ['gws', 'gwserver'],
  categories: ['liqo'],
  description: 'This end of the link to one peer, where the peer dials.',
  writers: { object: 'broker, liqoctl or a user', status: 'gateway controller' },
  columns: [
    { name: 'Template Kind', type: 'string', jsonPath: '.spec.serverTemplateRef.kind', priority: 1 },
    { name: 'Template Name', type: 'string', jsonPath: '.spec.serverTemplateRef.name' },
    { name: 'Template Namespace', type: 'string', jsonPath: '.spec.serverTemplateRef.namespace', priority: 1 },
    { name: 'IP', type: 'string', jsonPath: '.status.endpoint.addresses[*]' },
    { name: 'Port', type: 'integer', jsonPath: '.status.endpoint.port' },
    { name: 'Protocol', type: 'string', jsonPath: '.status.endpoint.protocol', priority: 1 },
    { name: 'MTU', type: 'integer', jsonPath: '.spec.mtu', priority: 1 },
    ageColumn,
  ],
  spec: GatewayServerSpec,
  status: GatewayServerStatus,
});
