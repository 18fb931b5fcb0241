/** POST /v1/requests/{request}/reject */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { requestResource } from '#functions/runtime/present-cross-tenant.ts';
import { Decision, PeeringRequest } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/requests/{request}/reject',
    summary: 'Reject a request',
    description: 'By the asked tenant.',
    auth: 'key',
    permission: 'requests:write',
    pathParameters: z.object({ request: z.string() }),
    body: Decision,
    refusals: ['request_closed'],
    answers: { 200: { description: 'The rejected request.', body: PeeringRequest } },
  },
  async ({ control, caller, path, body, signal }) => ({
    body: requestResource(await control.requests.reject(caller, path.request, body.reason, signal)),
  }),
);
