/** PATCH /v1/tenants/{tenant} */
import * as z from 'zod';
import { versionIn } from '#functions/runtime/conditional.ts';
import { http } from '#functions/runtime/http.ts';
import { given, tenantResource } from '#functions/runtime/present-tenancy.ts';
import { TenantChange, TenantResource } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'PATCH',
    path: '/v1/tenants/{tenant}',
    summary: 'Rename, suspend, resume or limit a tenant',
    description:
      'For the operator of the broker. Suspension refuses every request of members and agents within ten seconds; running peerings go on. If-Match makes it conditional.',
    auth: 'operator',
    conditional: true,
    pathParameters: z.object({ tenant: z.string() }),
    body: TenantChange,
    refusals: ['tenant_deleting'],
    answers: { 200: { description: 'The tenant as it is now.', body: TenantResource } },
  },
  async ({ control, operator, path, body, headers, signal }) => {
    const ifVersion = versionIn(headers, 'if-match');
    const { limits, ...rest } = given(body);
    const change = { ...rest, ...(limits && { limits: given(limits) }) };
    const options = ifVersion === undefined ? {} : { ifVersion };
    return {
      body: tenantResource(await control.tenants.operators.change(operator, path.tenant, change, options, signal)),
    };
  },
);
