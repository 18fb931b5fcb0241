/** POST /v1/event-targets/{target}/deliveries/{delivery}/replay */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { targetDeliveryResource } from '#functions/runtime/present-webhooks.ts';
import { EventTargetDelivery } from '#shared/schema/api/event-targets.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/event-targets/{target}/deliveries/{delivery}/replay',
    summary: 'Send an event to an event target again',
    description:
      'At once and with all its retries, regardless of the earlier outcome. A FIFO queue drops what it took less than five minutes ago.',
    auth: 'key',
    permission: 'webhooks:write',
    pathParameters: z.object({ target: z.string(), delivery: z.string() }),
    refusals: ['event_target_disabled'],
    answers: { 202: { description: 'The delivery to come.', body: EventTargetDelivery } },
  },
  async ({ control, caller, path, signal }) => {
    const { deliveries } = control.eventTargets;
    return {
      status: 202,
      body: targetDeliveryResource(await deliveries.replay(caller, path.target, path.delivery, signal)),
    };
  },
);
