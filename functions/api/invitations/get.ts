/** GET /v1/invitations/{invitation} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { invitationResource } from '#functions/runtime/present-cross-tenant.ts';
import { Invitation } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/invitations/{invitation}',
    summary: 'Read one invitation',
    auth: 'key',
    permission: 'invitations:read',
    pathParameters: z.object({ invitation: z.string() }),
    answers: { 200: { description: 'The invitation.', body: Invitation } },
  },
  async ({ control, caller, path, signal }) => ({
    body: invitationResource(await control.invitations.get(caller, path.invitation, signal)),
  }),
);
