/** networking.liqo.io WgGatewayServer: the WireGuard gateway rendered for a GatewayServer of the same name. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Conditions, ObjectReference } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { EndpointStatus, InternalEndpoint, KeySecret } from './gateway-endpoint.ts';
import { networkNames } from './network-names.ts';
import { GatewayDeployment, GatewayMetrics, ServiceTemplate } from './rendered-gateway.ts';

export const WgGatewayServerSpec = z.object({
  service: ServiceTemplate.describe('Service that the peer dials.'),
  deployment: GatewayDeployment.describe('The gateway pods.'),
  metrics: GatewayMetrics.optional(),
  secretRef: KeySecret,
});
export type WgGatewayServerSpec = z.infer<typeof WgGatewayServerSpec>;

export const WgGatewayServerStatus = z.object({
  secretRef: ObjectReference.optional().describe('Secret in use.'),
  endpoint: EndpointStatus.optional().describe('Where a client can reach this gateway.'),
  internalEndpoint: InternalEndpoint.optional(),
  conditions: Conditions.optional().describe(
    'Ready: what is missing, and which action on which side provides it. Isthmus only.',
  ),
});
export type WgGatewayServerStatus = z.infer<typeof WgGatewayServerStatus>;

export type WgGatewayServer = KubeResource<WgGatewayServerSpec, WgGatewayServerStatus>;

export const wgGatewayServers = defineKind<WgGatewayServer>({
  ...networkNames.wgGatewayServers,
  shortNames: ['wgs', 'wggs'],
  categories: ['liqo'],
  description: 'The WireGuard gateway rendered for a GatewayServer of the same name.',
  writers: { object: 'gateway controller', status: 'WireGuard gateway controller' },
  columns: [ageColumn],
  spec: WgGatewayServerSpec,
  status: WgGatewayServerStatus,
});
