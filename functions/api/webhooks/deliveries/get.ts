/** GET /v1/webhooks/{webhook}/deliveries/{delivery} */
import * as z from 'zod';
import { awaited } from '#control/events/changes.ts';
import { http } from '#functions/runtime/http.ts';
import { deliveryResource } from '#functions/runtime/present-webhooks.ts';
import { Wait, waitUntil } from '#functions/runtime/wait.ts';
import { WebhookDelivery } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/webhooks/{webhook}/deliveries/{delivery}',
    summary: 'Read one delivery',
    description: 'With `wait`, answers as soon as an attempt has ended.',
    auth: 'key',
    permission: 'webhooks:read',
    pathParameters: z.object({ webhook: z.string(), delivery: z.string() }),
    query: z.object({ wait: Wait }),
    answers: { 200: { description: 'The delivery.', body: WebhookDelivery } },
  },
  async ({ control, caller, path, query, ...rest }) => {
    const delivery = await waitUntil({
      ...rest,
      look: () => control.webhooks.deliveries.get(caller, path.webhook, path.delivery, rest.signal),
      done: ({ state, last }) => state !== 'pending' || last !== undefined,
      seconds: query.wait,
      tenant: caller.tenant,
      names: awaited.delivery(caller.tenant, path.webhook, path.delivery),
    });
    return { body: deliveryResource(delivery) };
  },
);
