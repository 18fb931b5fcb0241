/** All that a node process knows, as plain lists in any order. Filled from caches by `watch.ts`; read by the pure files beside it. */
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { FirewallConfiguration } from '#shared/schema/liqo/firewall-configuration.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import type { InternalFabric } from '#shared/schema/liqo/internal-fabric.ts';
import type { InternalNode } from '#shared/schema/liqo/internal-node.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import type { PublicKey } from '#shared/schema/liqo/public-key.ts';
import type { RouteConfiguration } from '#shared/schema/liqo/route-configuration.ts';

export interface NodeAgentObjects {
  readonly nodes: readonly Node[];
  readonly internalNodes: readonly InternalNode[];
  readonly internalFabrics: readonly InternalFabric[];
  readonly configurations: readonly Configuration[];
  readonly gatewayServers: readonly GatewayServer[];
  readonly gatewayClients: readonly GatewayClient[];
  readonly publicKeys: readonly PublicKey[];
  readonly networks: readonly Network[];
  readonly ips: readonly Ip[];
  readonly firewalls: readonly FirewallConfiguration[];
  readonly routes: readonly RouteConfiguration[];
  /** Of all links and nodes. */
  readonly gatewayPods: readonly Pod[];
  /** Of the whole cluster; empty on nodes without a gateway, which need none. */
  readonly pods: readonly PodAddress[];
}

export interface PodAddress {
  readonly ip: string;
  readonly node: string;
}

export const noObjects: NodeAgentObjects = {
  nodes: [],
  internalNodes: [],
  internalFabrics: [],
  configurations: [],
  gatewayServers: [],
  gatewayClients: [],
  publicKeys: [],
  networks: [],
  ips: [],
  firewalls: [],
  routes: [],
  gatewayPods: [],
  pods: [],
};

/** Kinds with an object per pod or more: they change by the thousand, and what they change may wait a little. */
export const comesInCrowds = (what: keyof NodeAgentObjects): boolean => what === 'pods' || what === 'ips';
