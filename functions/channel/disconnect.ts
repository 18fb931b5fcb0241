/** WebSocket $disconnect. Best effort, and of an agent only a hint that it may be gone: it has its time to come back. */
import { compositionOf } from '#functions/runtime/composition.ts';
import type { SocketFunction } from './socket.ts';

export const handler: SocketFunction = async (event, context) => {
  const { control, connections } = compositionOf(context);
  const agent = await connections.closed(event.requestContext.connectionId);
  if (agent !== undefined) await control.clusters.lost(agent);
  return { statusCode: 200 };
};
