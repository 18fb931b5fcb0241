/** GET /v1/requests/{request} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { requestResource } from '#functions/runtime/present-cross-tenant.ts';
import { PeeringRequest } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/requests/{request}',
    summary: 'Read one request',
    auth: 'key',
    permission: 'requests:read',
    pathParameters: z.object({ request: z.string() }),
    answers: { 200: { description: 'The request.', body: PeeringRequest } },
  },
  async ({ control, caller, path, signal }) => ({
    body: requestResource(await control.requests.get(caller, path.request, signal)),
  }),
);
