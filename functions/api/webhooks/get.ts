/** GET /v1/webhooks/{webhook} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { webhookResource } from '#functions/runtime/present-webhooks.ts';
import { Webhook } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/webhooks/{webhook}',
    summary: 'Read one webhook',
    auth: 'key',
    permission: 'webhooks:read',
    pathParameters: z.object({ webhook: z.string() }),
    answers: { 200: { description: 'The webhook.', body: Webhook } },
  },
  async ({ control, caller, path, signal }) => ({
    body: webhookResource(await control.webhooks.get(caller, path.webhook, signal)),
  }),
);
