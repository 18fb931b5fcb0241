/** GET /v1/tenants/me */
import { http } from '#functions/runtime/http.ts';
import { Me } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/tenants/me',
    summary: 'Read the calling principal',
    auth: 'key',
    answers: { 200: { description: 'The tenant and rights of the API key.', body: Me } },
  },
  async ({ caller: { tenant, principal, role, scopes } }) => ({
    body: { tenant, principal, role, ...(scopes && { scopes }) },
  }),
);
