/** DELETE /v1/event-targets/{target} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { eventTargetResource } from '#functions/runtime/present-webhooks.ts';
import { EventTarget } from '#shared/schema/api/event-targets.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/event-targets/{target}',
    summary: 'Delete an event target',
    description: 'What waits for it is dropped, and its dead letters cannot be reached any more.',
    auth: 'key',
    permission: 'webhooks:write',
    pathParameters: z.object({ target: z.string() }),
    answers: { 200: { description: 'The event target as it was.', body: EventTarget } },
  },
  async ({ control, caller, path, signal }) => ({
    body: eventTargetResource(await control.eventTargets.delete(caller, path.target, signal)),
  }),
);
