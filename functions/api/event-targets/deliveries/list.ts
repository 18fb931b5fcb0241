/** GET /v1/event-targets/{target}/deliveries */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { pageOf } from '#functions/runtime/present.ts';
import { targetDeliveryResource } from '#functions/runtime/present-webhooks.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { EventTargetDeliveryPage } from '#shared/schema/api/event-targets.ts';
import { DeliveryState } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/event-targets/{target}/deliveries',
    summary: 'List the deliveries of an event target',
    description: 'Newest first. Delivered ones are kept for 7 days, dead letters for 30.',
    auth: 'key',
    permission: 'webhooks:read',
    pathParameters: z.object({ target: z.string() }),
    query: Paging.extend({ state: DeliveryState.optional() }),
    answers: { 200: { description: 'A page of deliveries.', body: EventTargetDeliveryPage } },
  },
  async ({ control, caller, path, query, signal }) => {
    const { deliveries } = control.eventTargets;
    const request = { ...pageRequest(query), ...(query.state !== undefined && { state: query.state }) };
    return { body: pageOf(await deliveries.list(caller, path.target, request, signal), targetDeliveryResource) };
  },
);
