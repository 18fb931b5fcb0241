/** Handles of the network kinds without their schemas: the node process reads these kinds and must not load zod. */
import type { ResourceType } from '#shared/domain/kube-object.ts';
import type { Configuration } from './configuration.ts';
import type { Connection } from './connection.ts';
import type { FirewallConfiguration } from './firewall-configuration.ts';
import type { GatewayClient } from './gateway-client.ts';
import type { GatewayServer } from './gateway-server.ts';
import type { InternalFabric } from './internal-fabric.ts';
import type { InternalNode } from './internal-node.ts';
import type { Ip } from './ip.ts';
import type { Network } from './network.ts';
import type { PublicKey } from './public-key.ts';
import type { RouteConfiguration } from './route-configuration.ts';
import type { WgGatewayClient } from './wg-gateway-client.ts';
import type { WgGatewayClientTemplate } from './wg-gateway-client-template.ts';
import type { WgGatewayServer } from './wg-gateway-server.ts';
import type { WgGatewayServerTemplate } from './wg-gateway-server-template.ts';

const networking = { group: 'networking.liqo.io', version: 'v1beta1', namespaced: true } as const;
const ipam = { group: 'ipam.liqo.io', version: 'v1alpha1', namespaced: true } as const;

export const networkKinds = {
  configurations: { ...networking, kind: 'Configuration', plural: 'configurations' } as ResourceType<Configuration>,
  gatewayServers: { ...networking, kind: 'GatewayServer', plural: 'gatewayservers' } as ResourceType<GatewayServer>,
  gatewayClients: { ...networking, kind: 'GatewayClient', plural: 'gatewayclients' } as ResourceType<GatewayClient>,
  wgGatewayServers: {
    ...networking,
    kind: 'WgGatewayServer',
    plural: 'wggatewayservers',
  } as ResourceType<WgGatewayServer>,
  wgGatewayClients: {
    ...networking,
    kind: 'WgGatewayClient',
    plural: 'wggatewayclients',
  } as ResourceType<WgGatewayClient>,
  wgGatewayServerTemplates: {
    ...networking,
    kind: 'WgGatewayServerTemplate',
    plural: 'wggatewayservertemplates',
  } as ResourceType<WgGatewayServerTemplate>,
  wgGatewayClientTemplates: {
    ...networking,
    kind: 'WgGatewayClientTemplate',
    plural: 'wggatewayclienttemplates',
  } as ResourceType<WgGatewayClientTemplate>,
  /** The plural is Liqo's. */
  publicKeys: { ...networking, kind: 'PublicKey', plural: 'publickeies' } as ResourceType<PublicKey>,
  connections: { ...networking, kind: 'Connection', plural: 'connections' } as ResourceType<Connection>,
  internalNodes: {
    ...networking,
    kind: 'InternalNode',
    plural: 'internalnodes',
    namespaced: false,
  } as ResourceType<InternalNode>,
  internalFabrics: { ...networking, kind: 'InternalFabric', plural: 'internalfabrics' } as ResourceType<InternalFabric>,
  routeConfigurations: {
    ...networking,
    kind: 'RouteConfiguration',
    plural: 'routeconfigurations',
  } as ResourceType<RouteConfiguration>,
  firewallConfigurations: {
    ...networking,
    kind: 'FirewallConfiguration',
    plural: 'firewallconfigurations',
  } as ResourceType<FirewallConfiguration>,
  networks: { ...ipam, kind: 'Network', plural: 'networks' } as ResourceType<Network>,
  ips: { ...ipam, kind: 'IP', plural: 'ips' } as ResourceType<Ip>,
} as const;
