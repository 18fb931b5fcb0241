/** GET /v1/tenants/{tenant} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { tenantResource } from '#functions/runtime/present-tenancy.ts';
import { TenantResource } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/tenants/{tenant}',
    summary: 'Read a tenant',
    description: 'For the operator of the broker: name, state and limits, and nothing of what is inside.',
    auth: 'operator',
    pathParameters: z.object({ tenant: z.string() }),
    answers: { 200: { description: 'The tenant.', body: TenantResource } },
  },
  async ({ control, operator, path, signal }) => ({
    body: tenantResource(await control.tenants.operators.get(operator, path.tenant, signal)),
  }),
);
