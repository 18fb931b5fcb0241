/** WebSocket $disconnect. Best effort: liveness is judged by what an agent sends, never by its connection. */
import { compositionOf } from '#functions/runtime/composition.ts';
import type { SocketFunction } from './socket.ts';

export const handler: SocketFunction = async (event, context) => {
  await compositionOf(context).connections.closed(event.requestContext.connectionId);
  return { statusCode: 200 };
};
