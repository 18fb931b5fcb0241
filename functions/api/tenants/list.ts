/** GET /v1/tenants */
import { http } from '#functions/runtime/http.ts';
import { pageOf } from '#functions/runtime/present.ts';
import { tenantResource } from '#functions/runtime/present-tenancy.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { TenantPage } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/tenants',
    summary: 'List tenants',
    description: 'For the operator of the broker.',
    auth: 'operator',
    query: Paging,
    answers: { 200: { description: 'A page of tenants.', body: TenantPage } },
  },
  async ({ control, operator, query, signal }) => ({
    body: pageOf(await control.tenants.operators.list(operator, pageRequest(query), signal), tenantResource),
  }),
);
