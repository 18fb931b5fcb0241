/** POST /v1/agent/observed */
import { http } from '#functions/runtime/http.ts';
import { ObservedAnswer, ObservedBatch } from '#shared/schema/protocol/agent-protocol.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/agent/observed',
    summary: 'Report what exists in the cluster',
    auth: 'agent',
    body: ObservedBatch,
    answers: { 200: { description: 'Stored. What to fetch next, and where it rings.', body: ObservedAnswer } },
  },
  async ({ control, agent, body, signal, doorbellUrl }) => {
    const answer: ObservedAnswer = await control.exchange.observe(agent, body, signal);
    return { body: { ...answer, ...(doorbellUrl !== undefined && { doorbellUrl }) } };
  },
);
