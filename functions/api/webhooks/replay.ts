/** POST /v1/webhooks/{webhook}/replay */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { ReplayDead, ReplayedDead } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/webhooks/{webhook}/replay',
    summary: 'Send the dead letters of a webhook again',
    description: 'The newest first, some at a time.',
    auth: 'key',
    permission: 'webhooks:write',
    pathParameters: z.object({ webhook: z.string() }),
    body: ReplayDead,
    refusals: ['cursor_unknown', 'webhook_disabled'],
    answers: { 202: { description: 'How many are tried again now.', body: ReplayedDead } },
  },
  async ({ control, caller, path, body, signal }) => ({
    status: 202,
    body: await control.webhooks.deliveries.replayDead(caller, path.webhook, body.cursor, signal),
  }),
);
