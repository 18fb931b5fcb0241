/** WebSocket $connect: an agent opens its doorbell, signing the request as any other. */
import { compositionOf } from '#functions/runtime/composition.ts';
import { problemResponse } from '#functions/runtime/problem.ts';
import { type SocketFunction, socketPath } from './socket.ts';

export const handler: SocketFunction = async (event, context) => {
  const { control, connections } = compositionOf(context);
  const { connectionId, requestId, ...rest } = event.requestContext;
  const { sourceIp } = (rest as { identity?: { sourceIp?: string } }).identity ?? {};
  try {
    const agent = await control.clusters.authenticateAgent({
      from: sourceIp ?? '',
      requestId,
      authorization: event.headers?.authorization ?? event.headers?.Authorization,
      method: 'GET',
      path: socketPath,
      body: new Uint8Array(),
    });
    await control.tenants.mustServe(agent.tenant);
    await control.tenants.admit(agent.tenant, 'events');
    await connections.opened(connectionId, agent);
    return { statusCode: 200 };
  } catch (error) {
    return problemResponse(error, requestId);
  }
};
