/** POST /v1/webhooks/{webhook}/deliveries/{delivery}/replay */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { deliveryResource } from '#functions/runtime/present-webhooks.ts';
import { WebhookDelivery } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/webhooks/{webhook}/deliveries/{delivery}/replay',
    summary: 'Send an event to a webhook again',
    description: 'At once and with all its retries, regardless of the earlier outcome. The webhook-id stays the same.',
    auth: 'key',
    permission: 'webhooks:write',
    pathParameters: z.object({ webhook: z.string(), delivery: z.string() }),
    refusals: ['webhook_disabled'],
    answers: { 202: { description: 'The delivery to come.', body: WebhookDelivery } },
  },
  async ({ control, caller, path, signal }) => ({
    status: 202,
    body: deliveryResource(await control.webhooks.deliveries.replay(caller, path.webhook, path.delivery, signal)),
  }),
);
