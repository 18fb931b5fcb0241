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
import { networkNames } from './network-names.ts';
import type { PublicKey } from './public-key.ts';
import type { RouteConfiguration } from './route-configuration.ts';
import type { WgGatewayClient } from './wg-gateway-client.ts';
import type { WgGatewayClientTemplate } from './wg-gateway-client-template.ts';
import type { WgGatewayServer } from './wg-gateway-server.ts';
import type { WgGatewayServerTemplate } from './wg-gateway-server-template.ts';

export const networkKinds = {
  configurations: networkNames.configurations as ResourceType<Configuration>,
  gatewayServers: networkNames.gatewayServers as ResourceType<GatewayServer>,
  gatewayClients: networkNames.gatewayClients as ResourceType<GatewayClient>,
  wgGatewayServers: networkNames.wgGatewayServers as ResourceType<WgGatewayServer>,
  wgGatewayClients: networkNames.wgGatewayClients as ResourceType<WgGatewayClient>,
  wgGatewayServerTemplates: networkNames.wgGatewayServerTemplates as ResourceType<WgGatewayServerTemplate>,
  wgGatewayClientTemplates: networkNames.wgGatewayClientTemplates as ResourceType<WgGatewayClientTemplate>,
  publicKeys: networkNames.publicKeys as ResourceType<PublicKey>,
  connections: networkNames.connections as ResourceType<Connection>,
  internalNodes: networkNames.internalNodes as ResourceType<InternalNode>,
  internalFabrics: networkNames.internalFabrics as ResourceType<InternalFabric>,
  routeConfigurations: networkNames.routeConfigurations as ResourceType<RouteConfiguration>,
  firewallConfigurations: networkNames.firewallConfigurations as ResourceType<FirewallConfiguration>,
  networks: networkNames.networks as ResourceType<Network>,
  ips: networkNames.ips as ResourceType<Ip>,
} as const;
