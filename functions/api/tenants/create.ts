/** POST /v1/tenants */
import { http } from '#functions/runtime/http.ts';
import { issuedKeyResource } from '#functions/runtime/present.ts';
import { given, tenantResource } from '#functions/runtime/present-tenancy.ts';
import { NewTenant, NewTenantAnswer } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/tenants',
    summary: 'Make a tenant',
    description: 'With its first admin key. For the operator of the broker.',
    auth: 'operator',
    body: NewTenant,
    answers: { 201: { description: 'The tenant; the secret of its first key is shown once.', body: NewTenantAnswer } },
    answerHolds: 'secret',
  },
  async ({ control, operator, body, signal }) => {
    const { limits, ...rest } = given(body);
    const input = { ...rest, ...(limits && { limits: given(limits) }) };
    const { tenant, issued } = await control.tenants.operators.create(operator, input, signal);
    return { status: 201, body: { tenant: tenantResource(tenant), firstKey: issuedKeyResource(issued) } };
  },
);
