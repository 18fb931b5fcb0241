/** networking.liqo.io WgGatewayClientTemplate: what a GatewayClient is rendered from. */
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { networkNames } from './network-names.ts';
import { GatewayTemplateSpec } from './rendered-gateway.ts';

export type WgGatewayClientTemplate = KubeResource<GatewayTemplateSpec>;

export const wgGatewayClientTemplates = defineKind<WgGatewayClientTemplate>({
  ...networkNames.wgGatewayClientTemplates,
  shortNames: ['wggct', 'wgct'],
  categories: ['liqo'],
  description: 'What a GatewayClient is rendered from.',
  writers: { object: 'the installation (`wireguard-client`) or a user' },
  columns: [ageColumn],
  spec: GatewayTemplateSpec,
});
