/** GET /v1/event-targets/{target}/deliveries/{delivery} */
import * as z from 'zod';
import { awaited } from '#control/events/changes.ts';
import { http } from '#functions/runtime/http.ts';
import { targetDeliveryResource } from '#functions/runtime/present-webhooks.ts';
import { Wait, waitUntil } from '#functions/runtime/wait.ts';
import { EventTargetDelivery } from '#shared/schema/api/event-targets.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/event-targets/{target}/deliveries/{delivery}',
    summary: 'Read one delivery to an event target',
    description: 'With `wait`, answers as soon as an attempt has ended.',
    auth: 'key',
    permission: 'webhooks:read',
    pathParameters: z.object({ target: z.string(), delivery: z.string() }),
    query: z.object({ wait: Wait }),
    answers: { 200: { description: 'The delivery.', body: EventTargetDelivery } },
  },
  async ({ control, caller, path, query, ...rest }) => {
    const delivery = await waitUntil({
      ...rest,
      look: () => control.eventTargets.deliveries.get(caller, path.target, path.delivery, rest.signal),
      done: ({ state, last }) => state !== 'pending' || last !== undefined,
      seconds: query.wait,
      tenant: caller.tenant,
      names: awaited.delivery(caller.tenant, path.target, path.delivery),
    });
    return { body: targetDeliveryResource(delivery) };
  },
);
