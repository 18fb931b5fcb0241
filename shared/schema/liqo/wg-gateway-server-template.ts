/** networking.liqo.io WgGatewayServerTemplate: what a GatewayServer is rendered from. */
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { ageColumn, defineKind } from '../definition/kind.ts';
import { networkNames } from './network-names.ts';
import { GatewayTemplateSpec } from './rendered-gateway.ts';

export type WgGatewayServerTemplate = KubeResource<GatewayTemplateSpec>;

export const wgGatewayServerTemplates = defineKind<WgGatewayServerTemplate>({
  ...networkNames.wgGatewayServerTemplates,
  shortNames: ['wggst', 'wgst'],
  categories: ['liqo'],
  description: 'What a GatewayServer is rendered from.',
  writers: { object: 'the installation (`wireguard-server`) or a user' },
  columns: [ageColumn],
  spec: GatewayTemplateSpec,
});
