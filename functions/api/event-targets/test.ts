/** POST /v1/event-targets/{target}/test */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { targetDeliveryResource } from '#functions/runtime/present-webhooks.ts';
import { EventTargetDelivery } from '#shared/schema/api/event-targets.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/event-targets/{target}/test',
    summary: 'Send a test event to an event target',
    description: 'Once, also when it is disabled. Read the delivery with `wait` to see what came of it.',
    auth: 'key',
    permission: 'webhooks:write',
    pathParameters: z.object({ target: z.string() }),
    answers: { 202: { description: 'The delivery to come.', body: EventTargetDelivery } },
  },
  async ({ control, caller, path, signal }) => ({
    status: 202,
    body: targetDeliveryResource(await control.eventTargets.deliveries.test(caller, path.target, signal)),
  }),
);
