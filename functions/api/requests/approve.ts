/** POST /v1/requests/{request}/approve */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { requestResource } from '#functions/runtime/present-cross-tenant.ts';
import { Decision, PeeringRequest } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/requests/{request}/approve',
    summary: 'Approve a request',
    description: 'By the asked tenant. Makes the peering, within what was asked for.',
    auth: 'key',
    permission: 'requests:write',
    pathParameters: z.object({ request: z.string() }),
    body: Decision,
    refusals: ['request_closed', 'cluster_unknown', 'policy_refused', 'cluster_id_taken', 'in_use', 'limit_reached'],
    answers: { 200: { description: 'The approved request, with its peering.', body: PeeringRequest } },
  },
  async ({ control, caller, path, body, signal }) => ({
    body: requestResource(await control.requests.approve(caller, path.request, body.reason, signal)),
  }),
);
