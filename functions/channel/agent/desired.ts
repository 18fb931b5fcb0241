/** GET /v1/agent/desired */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { decimal } from '#functions/runtime/queries.ts';
import { DesiredAnswer } from '#shared/schema/protocol/agent-protocol.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/agent/desired',
    summary: 'Read what should exist in the cluster',
    auth: 'agent',
    query: z.object({
      after: decimal(z.number().int().min(0)).default(0).describe('The revision already known; 0 for everything.'),
    }),
    answers: { 200: { description: 'Sets changed since; all of them when `full`.', body: DesiredAnswer } },
  },
  async ({ control, agent, query, signal }) => ({ body: await control.exchange.desired(agent, query.after, signal) }),
);
