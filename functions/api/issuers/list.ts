/** GET /v1/issuers */
import { http } from '#functions/runtime/http.ts';
import { pageOf } from '#functions/runtime/present.ts';
import { issuerResource } from '#functions/runtime/present-tenancy.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { IssuerPage } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/issuers',
    summary: 'List identity providers',
    auth: 'key',
    permission: 'issuers:read',
    query: Paging,
    answers: { 200: { description: 'A page of issuers.', body: IssuerPage } },
  },
  async ({ control, caller, query, signal }) => ({
    body: pageOf(await control.tenants.issuers.list(caller, pageRequest(query), signal), issuerResource),
  }),
);
