/** DELETE /v1/requests/{request} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { requestResource } from '#functions/runtime/present-cross-tenant.ts';
import { PeeringRequest } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/requests/{request}',
    summary: 'Withdraw a request',
    description: 'By the tenant that made it, while it is pending.',
    auth: 'key',
    permission: 'requests:write',
    pathParameters: z.object({ request: z.string() }),
    refusals: ['request_closed'],
    answers: { 200: { description: 'The withdrawn request.', body: PeeringRequest } },
  },
  async ({ control, caller, path, signal }) => ({
    body: requestResource(await control.requests.withdraw(caller, path.request, signal)),
  }),
);
