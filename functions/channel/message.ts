/** WebSocket $default: the only thing an agent says on its doorbell is ping. Only refused frames are logged: each of an idle agent would be as many lines as its reports. */
import { compositionOf } from '#functions/runtime/composition.ts';
import { requestMessage } from '#functions/runtime/request-log.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { AgentFrame } from '#shared/schema/protocol/agent-protocol.ts';
import type { SocketFunction } from './socket.ts';

const parse = (text: string | undefined): unknown => {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
};

export const handler: SocketFunction = async (event, context) => {
  const { control, connections, log } = compositionOf(context);
  const agent = await connections.agentOf(event.requestContext.connectionId);
  if (agent === undefined) return { statusCode: 410 };
  const { tenant, clusterId, protocol } = agent;
  try {
    // A frame counts as a request does, also when it says nothing that is understood.
    await control.tenants.admit(tenant, 'events');
  } catch (error) {
    if (codeOf(error) !== 'rate_limited') throw error;
    const { requestId, connectionId } = event.requestContext;
    const facts = { requestId, connectionId, route: '$default', tenant, principal: agent.principal };
    log.info(requestMessage, { ...facts, status: 429, code: 'rate_limited' });
    return { statusCode: 429 };
  }
  // A newer agent may say more; what is not understood is ignored.
  const { data: ping } = AgentFrame.safeParse(parse(event.body));
  if (ping === undefined) return { statusCode: 200 };
  const news = await control.clusters.heard({
    tenant,
    clusterId,
    ping: true,
    ...(protocol !== undefined && { protocol }),
  });
  // Each frame is billed: an agent that is up to date gets no answer, unless it asks. Before version 2 every agent asks.
  const knows = ping.revision === news.revision && ping.heartbeatSeconds === news.heartbeatSeconds;
  return {
    statusCode: 200,
    ...(!(knows && ping.answer !== true) && { body: JSON.stringify({ type: 'pong', ...news }) }),
  };
};
