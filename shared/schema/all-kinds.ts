/** Every custom kind that Isthmus installs, in the order of the reference page. */
import type { KindDefinition } from './definition/kind.ts';
import { brokerLinks } from './isthmus/broker-link.ts';
import { peerings } from './isthmus/peering.ts';
import { peeringLocks } from './isthmus/peering-lock.ts';
import { peeringPolicies } from './isthmus/peering-policy.ts';
import { retainedVolumes } from './isthmus/retained-volume.ts';
import { trustedPeers } from './isthmus/trusted-peer.ts';
import { volumeMoves } from './isthmus/volume-move.ts';
import { configurations } from './liqo/configuration.ts';
import { connections } from './liqo/connection.ts';
import { firewallConfigurations } from './liqo/firewall-configuration.ts';
import { foreignClusters } from './liqo/foreign-cluster.ts';
import { gatewayClients } from './liqo/gateway-client.ts';
import { gatewayServers } from './liqo/gateway-server.ts';
import { identities } from './liqo/identity.ts';
import { internalFabrics } from './liqo/internal-fabric.ts';
import { internalNodes } from './liqo/internal-node.ts';
import { ips } from './liqo/ip.ts';
import { namespaceMaps } from './liqo/namespace-map.ts';
import { namespaceOffloadings } from './liqo/namespace-offloading.ts';
import { networks } from './liqo/network.ts';
import { publicKeys } from './liqo/public-key.ts';
import { quotas } from './liqo/quota.ts';
import { renews } from './liqo/renew.ts';
import { resourceSlices } from './liqo/resource-slice.ts';
import { routeConfigurations } from './liqo/route-configuration.ts';
import { shadowEndpointSlices } from './liqo/shadow-endpoint-slice.ts';
import { shadowPods } from './liqo/shadow-pod.ts';
import { tenants } from './liqo/tenant.ts';
import { virtualNodes } from './liqo/virtual-node.ts';
import { vkOptionsTemplates } from './liqo/vk-options-template.ts';
import { wgGatewayClients } from './liqo/wg-gateway-client.ts';
import { wgGatewayClientTemplates } from './liqo/wg-gateway-client-template.ts';
import { wgGatewayServers } from './liqo/wg-gateway-server.ts';
import { wgGatewayServerTemplates } from './liqo/wg-gateway-server-template.ts';

export const allKinds: readonly KindDefinition[] = [
  brokerLinks,
  peerings,
  peeringPolicies,
  trustedPeers,
  peeringLocks,
  retainedVolumes,
  volumeMoves,
  foreignClusters,
  tenants,
  identities,
  resourceSlices,
  renews,
  virtualNodes,
  namespaceOffloadings,
  namespaceMaps,
  quotas,
  shadowPods,
  shadowEndpointSlices,
  vkOptionsTemplates,
  configurations,
  gatewayServers,
  gatewayClients,
  connections,
  publicKeys,
  wgGatewayServers,
  wgGatewayClients,
  wgGatewayServerTemplates,
  wgGatewayClientTemplates,
  networks,
  ips,
  internalNodes,
  internalFabrics,
  routeConfigurations,
  firewallConfigurations,
];
