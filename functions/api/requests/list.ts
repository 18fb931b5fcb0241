/** GET /v1/requests */
import { http } from '#functions/runtime/http.ts';
import { pageOf } from '#functions/runtime/present.ts';
import { requestResource } from '#functions/runtime/present-cross-tenant.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { PeeringRequestPage, RequestDirection, RequestState } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/requests',
    summary: 'List requests',
    description: 'Those that other tenants made of yours, or with `direction=sent` those that yours made.',
    auth: 'key',
    permission: 'requests:read',
    query: Paging.extend({ direction: RequestDirection.optional(), state: RequestState.optional() }),
    answers: { 200: { description: 'A page of requests.', body: PeeringRequestPage } },
  },
  async ({ control, caller, query, signal }) => {
    const { direction, state } = query;
    const filter = { ...pageRequest(query), ...(direction && { direction }), ...(state && { state }) };
    return { body: pageOf(await control.requests.list(caller, filter, signal), requestResource) };
  },
);
