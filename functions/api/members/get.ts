/** GET /v1/members/{member} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { memberResource } from '#functions/runtime/present-tenancy.ts';
import { Member } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/members/{member}',
    summary: 'Read a member',
    auth: 'key',
    permission: 'members:read',
    pathParameters: z.object({ member: z.string() }),
    answers: { 200: { description: 'The member.', body: Member } },
  },
  async ({ control, caller, path, signal }) => ({
    body: memberResource(await control.tenants.members.get(caller, path.member, signal)),
  }),
);
