/** DELETE /v1/invitations/{invitation} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { invitationResource } from '#functions/runtime/present-cross-tenant.ts';
import { Invitation } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/invitations/{invitation}',
    summary: 'Revoke an invitation',
    description:
      'It cannot be used any more. Peerings that both clusters have agreed to stay; those that wait for it end.',
    auth: 'key',
    permission: 'invitations:write',
    pathParameters: z.object({ invitation: z.string() }),
    answers: { 200: { description: 'The revoked invitation.', body: Invitation } },
  },
  async ({ control, caller, path, signal }) => ({
    body: invitationResource(await control.invitations.revoke(caller, path.invitation, signal)),
  }),
);
