/** WebSocket $default: the only thing an agent or a portal says is ping. Only refused frames are logged: each of an idle agent would be as many lines as its reports. */
import type { APIGatewayProxyResultV2 } from 'aws-lambda';
import type { AgentCaller } from '#control/access/caller.ts';
import type { Listener } from '#control/events/listeners.ts';
import { type Composition, compositionOf } from '#functions/runtime/composition.ts';
import { endsListening, listenerCaller } from '#functions/runtime/listening.ts';
import { requestMessage } from '#functions/runtime/request-log.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { codes, type ErrorCode } from '#shared/errors/codes.ts';
import { type FeedFrame, ListenerFrame } from '#shared/schema/api/listening.ts';
import { AgentFrame } from '#shared/schema/protocol/agent-protocol.ts';
import type { SocketEvent, SocketFunction } from './socket.ts';

const parse = (text: string | undefined): unknown => {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
};

interface Sender {
  readonly tenant: string;
  readonly principal: string;
}

function refused({ log }: Composition, event: SocketEvent, { tenant, principal }: Sender, code: ErrorCode) {
  const { requestId, connectionId } = event.requestContext;
  const status = codes[code].http;
  log.info(requestMessage, { requestId, connectionId, route: '$default', tenant, principal, status, code });
  return { statusCode: status };
}

async function heardOfAgent(
  composition: Composition,
  event: SocketEvent,
  agent: AgentCaller,
): Promise<APIGatewayProxyResultV2> {
  const { control } = composition;
  const { tenant, clusterId, protocol } = agent;
  try {
    // A frame counts as a request does, also when it says nothing that is understood.
    await control.tenants.admit(tenant, 'events');
  } catch (error) {
    if (codeOf(error) !== 'rate_limited') throw error;
    return refused(composition, event, agent, 'rate_limited');
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
}

async function heardOfListener(
  composition: Composition,
  event: SocketEvent,
  listener: Listener,
): Promise<APIGatewayProxyResultV2> {
  const { control, connections } = composition;
  const { tenant, keyId } = listener;
  const { connectionId, requestId } = event.requestContext;
  try {
    await control.tenants.admit(tenant, 'requests');
    const caller = await listenerCaller(control, listener, { from: '', requestId });
    if (!ListenerFrame.safeParse(parse(event.body)).success) return { statusCode: 200 };
    const pong: FeedFrame = { type: 'pong', cursor: await control.events.newest(caller) };
    return { statusCode: 200, body: JSON.stringify(pong) };
  } catch (error) {
    const code = codeOf(error);
    const ends = endsListening(error);
    if (code === undefined || !(ends || code === 'rate_limited')) throw error;
    if (ends) await connections.close(connectionId);
    return refused(composition, event, { tenant, principal: `api-key/${keyId}` }, code);
  }
}

export const handler: SocketFunction = async (event, context) => {
  const composition = compositionOf(context);
  const holder = await composition.connections.holderOf(event.requestContext.connectionId);
  if (holder === undefined) return { statusCode: 410 };
  return 'agent' in holder
    ? heardOfAgent(composition, event, holder.agent)
    : heardOfListener(composition, event, holder.listener);
};
