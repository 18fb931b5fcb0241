/** All controllers of the network between clusters. */
import { rangeNodes } from '#agent/model/network-selections.ts';
import type { Controller } from '#kube/model/types.ts';
import { createConfigurationController } from './configuration/index.ts';
import { createConnectionController } from './connection/index.ts';
import { createGatewayClientController, createGatewayServerController } from './gateway/index.ts';
import { createInternalFabricController } from './internal-fabric/index.ts';
import { createInternalNodeController } from './internal-node/index.ts';
import { createApiServerIpController } from './ip/api-server.ts';
import { createIpController } from './ip/index.ts';
import { createNetworkController } from './network/index.ts';
import type { NetworkDeps } from './network-deps.ts';
import { createNetworkIpam } from './network-ipam.ts';
import { createOffloadedPodIpController } from './offloaded-pod-ip/index.ts';
import { createWgGatewayClientController, createWgGatewayServerController } from './wg-gateway/index.ts';

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
