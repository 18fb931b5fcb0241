/** All controllers of the network between clusters. */
import type { Controller } from '#agent/kube/types.ts';
import { createGatewayClientController, createGatewayServerController } from './gateway/index.ts';
import type { NetworkDeps } from './network-deps.ts';
import { createWgGatewayClientController, createWgGatewayServerController } from './wg-gateway/index.ts';

export const createNetworkControllers = (deps: NetworkDeps): Controller[] =>
  [
    createGatewayServerController,
    createGatewayClientController,
    createWgGatewayServerController,
    createWgGatewayClientController,
  ].map((create) => create(deps));
