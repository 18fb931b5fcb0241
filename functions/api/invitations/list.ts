/** GET /v1/invitations */
import { http } from '#functions/runtime/http.ts';
import { pageOf } from '#functions/runtime/present.ts';
import { invitationResource } from '#functions/runtime/present-cross-tenant.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { InvitationPage } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/invitations',
    summary: 'List invitations',
    auth: 'key',
    permission: 'invitations:read',
    query: Paging,
    answers: { 200: { description: 'A page of invitations, without their codes.', body: InvitationPage } },
  },
  async ({ control, caller, query, signal }) => ({
    body: pageOf(await control.invitations.list(caller, pageRequest(query), signal), invitationResource),
  }),
);
