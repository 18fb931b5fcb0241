/** DELETE /v1/members/{member} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { memberResource } from '#functions/runtime/present-tenancy.ts';
import { Member } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/members/{member}',
    summary: 'Remove a member',
    description: 'Its tokens are refused from then on.',
    auth: 'key',
    permission: 'members:write',
    pathParameters: z.object({ member: z.string() }),
    answers: { 200: { description: 'The member as it was.', body: Member } },
  },
  async ({ control, caller, path, signal }) => ({
    body: memberResource(await control.tenants.members.remove(caller, path.member, signal)),
  }),
);
