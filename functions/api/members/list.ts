/** GET /v1/members */
import { http } from '#functions/runtime/http.ts';
import { pageOf } from '#functions/runtime/present.ts';
import { memberResource } from '#functions/runtime/present-tenancy.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { MemberPage } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/members',
    summary: 'List members',
    auth: 'key',
    permission: 'members:read',
    query: Paging,
    answers: { 200: { description: 'A page of members.', body: MemberPage } },
  },
  async ({ control, caller, query, signal }) => ({
    body: pageOf(await control.tenants.members.list(caller, pageRequest(query), signal), memberResource),
  }),
);
