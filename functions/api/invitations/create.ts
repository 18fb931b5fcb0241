/** POST /v1/invitations */
import { http } from '#functions/runtime/http.ts';
import { invitationResource } from '#functions/runtime/present-cross-tenant.ts';
import { IssuedInvitation, NewInvitation } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/invitations',
    summary: 'Invite other tenants to a cluster',
    description:
      'The holder of the code may peer a cluster with this one, within the limits, until it expires, is used up or is revoked.',
    auth: 'key',
    permission: 'invitations:write',
    body: NewInvitation,
    refusals: ['cluster_unknown', 'limit_reached'],
    answers: { 201: { description: 'The invitation; its code is shown once.', body: IssuedInvitation } },
    answerHolds: 'secret',
  },
  async ({ control, caller, body, signal }) => {
    const { invitation, code } = await control.invitations.create(caller, body, signal);
    return { status: 201, body: { invitation: invitationResource(invitation), code } };
  },
);
