/** GET /v1/event-targets/{target} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { eventTargetResource } from '#functions/runtime/present-webhooks.ts';
import { EventTarget } from '#shared/schema/api/event-targets.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/event-targets/{target}',
    summary: 'Read one event target',
    auth: 'key',
    permission: 'webhooks:read',
    pathParameters: z.object({ target: z.string() }),
    answers: { 200: { description: 'The event target.', body: EventTarget } },
  },
  async ({ control, caller, path, signal }) => ({
    body: eventTargetResource(await control.eventTargets.get(caller, path.target, signal)),
  }),
);
