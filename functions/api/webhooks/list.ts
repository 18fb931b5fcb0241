/** GET /v1/webhooks */
import { http } from '#functions/runtime/http.ts';
import { pageOf } from '#functions/runtime/present.ts';
import { webhookResource } from '#functions/runtime/present-webhooks.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { WebhookPage } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/webhooks',
    summary: 'List webhooks',
    auth: 'key',
    permission: 'webhooks:read',
    query: Paging,
    answers: { 200: { description: 'A page of webhooks, without their secrets.', body: WebhookPage } },
  },
  async ({ control, caller, query, signal }) => ({
    body: pageOf(await control.webhooks.list(caller, pageRequest(query), signal), webhookResource),
  }),
);
