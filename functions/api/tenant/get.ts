/** GET /v1/tenant */
import { http } from '#functions/runtime/http.ts';
import { ownTenantResource } from '#functions/runtime/present-tenancy.ts';
import { OwnTenantResource } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/tenant',
    summary: 'Read the own tenant',
    description: 'Its state, its limits and what is used of them.',
    auth: 'key',
    permission: 'tenant:read',
    answers: { 200: { description: 'The tenant of the caller.', body: OwnTenantResource } },
  },
  async ({ control, caller, signal }) => ({ body: ownTenantResource(await control.tenants.own.get(caller, signal)) }),
);
