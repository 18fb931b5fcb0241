/** POST /v1/event-targets/{target}/replay */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { ReplayDead, ReplayedDead } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/event-targets/{target}/replay',
    summary: 'Send the dead letters of an event target again',
    description: 'The newest first, some at a time.',
    auth: 'key',
    permission: 'webhooks:write',
    pathParameters: z.object({ target: z.string() }),
    body: ReplayDead,
    refusals: ['cursor_unknown', 'event_target_disabled'],
    answers: { 202: { description: 'How many are tried again now.', body: ReplayedDead } },
  },
  async ({ control, caller, path, body, signal }) => ({
    status: 202,
    body: await control.eventTargets.deliveries.replayDead(caller, path.target, body.cursor, signal),
  }),
);
