/** networking.liqo.io WgGatewayClient: the WireGuard gateway rendered for a GatewayClient of the same name. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { Conditions, ObjectReference } from '../definition/fields.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { InternalEndpoint, KeySecret } from './gateway-endpoint.ts';
import { networkNames } from './network-names.ts';
import { GatewayDeployment, GatewayMetrics } from './rendered-gateway.ts';

export const WgGatewayClientSpec = z.object({
  deployment: GatewayDeployment.describe('The gateway pods.'),
  metrics: GatewayMetrics.optional(),
  secretRef: KeySecret,
});
export type WgGatewayClientSpec = z.infer<typeof WgGatewayClientSpec>;

const WgGatewayClientStatus = z.object({
  secretRef: ObjectReference.optional().describe('Secret in use.'),
  internalEndpoint: InternalEndpoint.optional(),
  conditions: Conditions.optional().describe(
    'Ready: what is missing, and which action on which side provides it. Isthmus only.',
  ),
});
type WgGatewayClientStatus = z.infer<typeof WgGatewayClientStatus>;

export type WgGatewayClient = KubeResource<WgGatewayClientSpec, WgGatewayClientStatus>;

export const wgGatewayClients = defineKind<WgGatewayClient>({
  ...networkNames.wgGatewayClients,
  shortNames: ['wgc', 'wggc'],
  categories: ['liqo'],
  description: 'The WireGuard gateway rendered for a GatewayClient of the same name.',
  writers: { object: 'gateway controller', status: 'WireGuard gateway controller' },
  columns: [ageColumn],
  spec: WgGatewayClientSpec,
  status: WgGatewayClientStatus,
});
