/** POST /v1/agent/ack */
import { http } from '#functions/runtime/http.ts';
import { AckRequest } from '#shared/schema/protocol/agent-protocol.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/agent/ack',
    summary: 'Say what was applied',
    auth: 'agent',
    body: AckRequest,
    answers: { 204: { description: 'Noted.' } },
  },
  async ({ control, agent, body, signal }) => {
    await control.exchange.ack(agent, body.revision, signal);
    return { status: 204 };
  },
);
