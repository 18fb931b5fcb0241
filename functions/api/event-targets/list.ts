/** GET /v1/event-targets */
import { http } from '#functions/runtime/http.ts';
import { pageOf } from '#functions/runtime/present.ts';
import { eventTargetResource } from '#functions/runtime/present-webhooks.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { EventTargetPage } from '#shared/schema/api/event-targets.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/event-targets',
    summary: 'List event targets',
    auth: 'key',
    permission: 'webhooks:read',
    query: Paging,
    answers: { 200: { description: 'A page of event targets.', body: EventTargetPage } },
  },
  async ({ control, caller, query, signal }) => ({
    body: pageOf(await control.eventTargets.list(caller, pageRequest(query), signal), eventTargetResource),
  }),
);
