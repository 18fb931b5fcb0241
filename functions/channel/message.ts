/** WebSocket $default: the only thing an agent says on its doorbell is ping. */
import { compositionOf } from '#functions/runtime/composition.ts';
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
  const { control, connections } = compositionOf(context);
  const agent = await connections.agentOf(event.requestContext.connectionId);
  if (agent === undefined) return { statusCode: 410 };
  // A newer agent may say more; what is not understood is ignored.
  if (!AgentFrame.safeParse(parse(event.body)).success) return { statusCode: 200 };
  await control.clusters.heard(agent);
  return { statusCode: 200, body: JSON.stringify({ type: 'pong' }) };
};
