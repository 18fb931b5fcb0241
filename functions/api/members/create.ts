/** POST /v1/members */
import { http } from '#functions/runtime/http.ts';
import { given, memberResource } from '#functions/runtime/present-tenancy.ts';
import { Member, NewMember } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/members',
    summary: 'Add a member',
    description: 'Named by e-mail address, or by issuer and subject; logs in at an issuer that the tenant registered.',
    auth: 'key',
    permission: 'members:write',
    body: NewMember,
    refusals: ['fields_conflict', 'already_exists'],
    answers: { 201: { description: 'The member.', body: Member } },
  },
  async ({ control, caller, body, signal }) => ({
    status: 201,
    body: memberResource(await control.tenants.members.add(caller, given(body), signal)),
  }),
);
