/** PATCH /v1/members/{member} */
import * as z from 'zod';
import { versionIn } from '#functions/runtime/conditional.ts';
import { http } from '#functions/runtime/http.ts';
import { given, memberResource } from '#functions/runtime/present-tenancy.ts';
import { Member, MemberChange } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'PATCH',
    path: '/v1/members/{member}',
    summary: 'Change the role or name of a member',
    description: 'The next request of the member has the new role. If-Match makes it conditional.',
    auth: 'key',
    conditional: true,
    permission: 'members:write',
    pathParameters: z.object({ member: z.string() }),
    body: MemberChange,
    answers: { 200: { description: 'The member as it is now.', body: Member } },
  },
  async ({ control, caller, path, body, headers, signal }) => {
    const ifVersion = versionIn(headers, 'if-match');
    const options = ifVersion === undefined ? {} : { ifVersion };
    const changed = await control.tenants.members.change(caller, path.member, given(body), options, signal);
    return { body: memberResource(changed) };
  },
);
