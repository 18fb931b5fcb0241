/** GET /v1/keys */
import { http } from '#functions/runtime/http.ts';
import { apiKeyResource, pageOf } from '#functions/runtime/present.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { ApiKeyPage } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/keys',
    summary: 'List API keys',
    auth: 'key',
    permission: 'keys:read',
    query: Paging,
    answers: { 200: { description: 'A page of API keys, without their secrets.', body: ApiKeyPage } },
  },
  async ({ control, caller, query, signal }) => ({
    body: pageOf(await control.tenants.listKeys(caller, pageRequest(query), signal), apiKeyResource),
  }),
);
