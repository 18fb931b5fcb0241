/** POST /v1/agent/observed */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { ObservedBatch } from '#shared/schema/protocol/agent-protocol.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/agent/observed',
    summary: 'Report what exists in the cluster',
    auth: 'agent',
    body: ObservedBatch,
    answers: {
      200: { description: 'Stored. The newest desired revision.', body: z.object({ revision: z.int().min(0) }) },
    },
  },
  async ({ control, agent, body, signal }) => ({ body: await control.exchange.observe(agent, body, signal) }),
);
