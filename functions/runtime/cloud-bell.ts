/** For the function that tells portals of news: the WebSocket API's management endpoint, asked once and briefly, for the events of all tenants wait meanwhile. */
import { ApiGatewayManagementApiClient } from '@aws-sdk/client-apigatewaymanagementapi';
import { createListenerBell, type ListenerBell } from '#control/adapters/apigateway/listener-bell.ts';
import { createSocketGateway } from '#control/adapters/apigateway/socket-gateway.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { clientSettings } from './client-settings.ts';
import type { BellDeps } from './cloud.ts';
import { mayListenAt } from './listening.ts';

const once = {
  maxAttempts: 1,
  requestHandler: { ...clientSettings.requestHandler, requestTimeout: 500 },
};

export const gatewayBell = ({ env, log, connections, control }: BellDeps): ListenerBell =>
  createListenerBell({
    gateway: createSocketGateway(
      new ApiGatewayManagementApiClient({ ...clientSettings, ...once, endpoint: env.SOCKET_ENDPOINT }),
    ),
    listeners: connections.listeners,
    mayListen: mayListenAt(control),
    clock: systemClock,
    log,
  });
