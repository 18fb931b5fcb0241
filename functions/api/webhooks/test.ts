/** POST /v1/webhooks/{webhook}/test */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { deliveryResource } from '#functions/runtime/present-webhooks.ts';
import { WebhookDelivery } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/webhooks/{webhook}/test',
    summary: 'Send a test event to a webhook',
    description: 'Once, also when it is disabled. Read the delivery with `wait` to see what came of it.',
    auth: 'key',
    permission: 'webhooks:write',
    pathParameters: z.object({ webhook: z.string() }),
    answers: { 202: { description: 'The delivery to come.', body: WebhookDelivery } },
  },
  async ({ control, caller, path, signal }) => ({
    status: 202,
    body: deliveryResource(await control.webhooks.deliveries.test(caller, path.webhook, signal)),
  }),
);
