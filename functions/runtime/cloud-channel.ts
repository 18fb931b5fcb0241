/** For functions that may ring: the WebSocket API's management endpoint. */
import { ApiGatewayManagementApiClient } from '@aws-sdk/client-apigatewaymanagementapi';
import { createGatewayChannel } from '#control/adapters/apigateway/gateway-channel.ts';
import { createSocketGateway } from '#control/adapters/apigateway/socket-gateway.ts';
import { clientSettings } from './client-settings.ts';
import type { CloudChannel, PartDeps } from './cloud.ts';

/** The caller of the function waits for the rings, and a missed one only costs latency. */
const hasty = {
  maxAttempts: 2,
  requestHandler: { ...clientSettings.requestHandler, requestTimeout: 1_000 },
};

export const gatewayChannel = ({ env, log, connections }: PartDeps): CloudChannel =>
  createGatewayChannel({
    gateway: createSocketGateway(
      new ApiGatewayManagementApiClient({ ...clientSettings, ...hasty, endpoint: env.SOCKET_ENDPOINT }),
    ),
    connections,
    log,
  });
