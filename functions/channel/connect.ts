/** WebSocket $connect: an agent opens its doorbell, signing the request as any other. */
import { compositionOf } from '#functions/runtime/composition.ts';
import { appErrorOf, problemResponse } from '#functions/runtime/problem.ts';
import { requestMessage } from '#functions/runtime/request-log.ts';
import { codes } from '#shared/errors/codes.ts';
import { type SocketFunction, socketPath } from './socket.ts';

export const handler: SocketFunction = async (event, context) => {
  const { control, connections, log } = compositionOf(context);
  const { connectionId, requestId, ...rest } = event.requestContext;
  const { sourceIp } = (rest as { identity?: { sourceIp?: string } }).identity ?? {};
  const facts = { requestId, connectionId, route: '$connect', from: sourceIp };
  let known: { readonly tenant?: string; readonly principal?: string } = {};
  try {
    const agent = await control.clusters.authenticateAgent({
      from: sourceIp ?? '',
      requestId,
      authorization: event.headers?.authorization ?? event.headers?.Authorization,
      method: 'GET',
      path: socketPath,
      body: new Uint8Array(),
    });
    known = { tenant: agent.tenant, principal: agent.principal };
    await control.tenants.mustServe(agent.tenant);
    await control.tenants.admit(agent.tenant, 'events');
    await connections.opened(connectionId, agent);
    log.info(requestMessage, { ...facts, ...known, status: 200 });
    return { statusCode: 200 };
  } catch (error) {
    const { code } = appErrorOf(error);
    log.info(requestMessage, { ...facts, ...known, status: codes[code].http, code });
    return problemResponse(error, requestId);
  }
};
