/** GET /v1/webhooks/{webhook}/deliveries */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { pageOf } from '#functions/runtime/present.ts';
import { deliveryResource } from '#functions/runtime/present-webhooks.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { DeliveryState, WebhookDeliveryPage } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/webhooks/{webhook}/deliveries',
    summary: 'List the deliveries of a webhook',
    description: 'Newest first. Delivered ones are kept for 7 days, dead letters for 30.',
    auth: 'key',
    permission: 'webhooks:read',
    pathParameters: z.object({ webhook: z.string() }),
    query: Paging.extend({ state: DeliveryState.optional() }),
    answers: { 200: { description: 'A page of deliveries.', body: WebhookDeliveryPage } },
  },
  async ({ control, caller, path, query, signal }) => {
    const request = { ...pageRequest(query), ...(query.state !== undefined && { state: query.state }) };
    return {
      body: pageOf(await control.webhooks.deliveries.list(caller, path.webhook, request, signal), deliveryResource),
    };
  },
);
