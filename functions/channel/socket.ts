/** What the three WebSocket functions share: the event as API Gateway sends it, and where agents and portals connect. */
import type { APIGatewayProxyResultV2, APIGatewayProxyWebsocketEventV2, Context } from 'aws-lambda';

/** `$connect` alone carries headers. */
export type SocketEvent = APIGatewayProxyWebsocketEventV2 & {
  readonly headers?: Readonly<Record<string, string | undefined>>;
};
export type SocketFunction = (event: SocketEvent, context: Context) => Promise<APIGatewayProxyResultV2>;

/** What an agent signs as `htp` when it connects: WebSocket APIs have no path. */
export const socketPath = '/v1/agent/connect';
