/** For functions that may ring: the WebSocket API's management endpoint. */
import { ApiGatewayManagementApiClient } from '@aws-sdk/client-apigatewaymanagementapi';
import { createGatewayChannel } from '#control/adapters/apigateway/gateway-channel.ts';
import { clientSettings } from './client-settings.ts';
import type { CloudChannel, PartDeps } from './cloud.ts';

export const gatewayChannel = ({ env, log, connections }: PartDeps): CloudChannel =>
  createGatewayChannel({
    client: new ApiGatewayManagementApiClient({ ...clientSettings, endpoint: env.SOCKET_ENDPOINT }),
    connections,
    log,
  });
