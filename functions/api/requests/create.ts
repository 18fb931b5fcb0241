/** POST /v1/requests */
import { http } from '#functions/runtime/http.ts';
import { requestResource } from '#functions/runtime/present-cross-tenant.ts';
import { NewPeeringRequest, PeeringRequest } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/requests',
    summary: 'Ask another tenant for a published cluster',
    description:
      'Waits in the inbox of the asked tenant until it is approved, rejected or expires; an approval rule of that tenant may approve it at once.',
    auth: 'key',
    permission: 'requests:write',
    body: NewPeeringRequest,
    refusals: ['not_found', 'cluster_unknown', 'policy_refused', 'cluster_id_taken', 'in_use', 'limit_reached'],
    answers: {
      200: { description: 'A request for this pair is pending already.', body: PeeringRequest },
      201: { description: 'The new request.', body: PeeringRequest },
    },
  },
  async ({ control, caller, body, signal }) => {
    const { class: name, ...rest } = body;
    const input = { ...rest, ...(name !== undefined && { class: name }) };
    const { request, created } = await control.requests.ask(caller, input, signal);
    return { status: created ? 201 : 200, body: requestResource(request) };
  },
);
