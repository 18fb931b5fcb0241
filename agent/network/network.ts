/** All controllers of the network between clusters. */
import { rangeNodes } from '#agent/model/network-selections.ts';
import type { Controller } from '#kube/model/types.ts';
import { createConnectionController } from './gateway/connection/controller.ts';
import { createGatewayClientController, createGatewayServerController } from './gateway/controller.ts';
import { createWgGatewayClientController, createWgGatewayServerController } from './gateway/wireguard/controller.ts';
import type { NetworkDeps } from './model/deps.ts';
import { createInternalFabricController } from './overlay/internal-fabric/controller.ts';
import { createInternalNodeController } from './overlay/internal-node/controller.ts';
import { createNetworkIpam } from './ranges/cluster-ipam.ts';
import { createConfigurationController } from './ranges/configuration/controller.ts';
import { createApiServerIpController } from './ranges/ip/api-server.ts';
import { createIpController } from './ranges/ip/controller.ts';
import { createNetworkController } from './ranges/network/controller.ts';
import { createOffloadedPodIpController } from './ranges/offloaded-pod-ip/controller.ts';

export function createNetworkControllers(deps: NetworkDeps): Controller[] {
  const ranges = { ...deps, state: createNetworkIpam(deps.cluster, rangeNodes(deps.cluster.caches)) };
  return [
    createNetworkController(ranges),
    createIpController(ranges),
    createApiServerIpController(deps),
    createOffloadedPodIpController(deps),
    createConfigurationController(deps),
    createInternalNodeController(ranges),
    createInternalFabricController(ranges),
    createGatewayServerController(deps),
    createGatewayClientController(deps),
    createWgGatewayServerController(deps),
    createWgGatewayClientController(deps),
    createConnectionController(deps),
  ];
}
