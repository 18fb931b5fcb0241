/** DELETE /v1/webhooks/{webhook} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { webhookResource } from '#functions/runtime/present-webhooks.ts';
import { Webhook } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/webhooks/{webhook}',
    summary: 'Delete a webhook',
    description: 'What waits for it is dropped, and its dead letters cannot be reached any more.',
    auth: 'key',
    permission: 'webhooks:write',
    pathParameters: z.object({ webhook: z.string() }),
    answers: { 200: { description: 'The webhook as it was.', body: Webhook } },
  },
  async ({ control, caller, path, signal }) => ({
    body: webhookResource(await control.webhooks.delete(caller, path.webhook, signal)),
  }),
);
