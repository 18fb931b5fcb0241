/** POST /v1/agent/enroll */
import { http } from '#functions/runtime/http.ts';
import { EnrollRequest, EnrollResponse } from '#shared/schema/protocol/agent-identity.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/agent/enroll',
    summary: 'Enrol a cluster with its join token',
    description: 'Signed with the key that it enrols. Repeating it with the same token and key gives the same answer.',
    auth: 'enroll',
    body: EnrollRequest,
    refusals: ['join_token_unknown', 'join_token_used', 'join_token_expired', 'cluster_key_known', 'limit_reached'],
    answers: { 200: { description: 'The cluster is enrolled; the key is pinned.', body: EnrollResponse } },
  },
  async ({ control, signed, body, signal }) => ({ body: await control.clusters.enroll(body, signed, signal) }),
);
