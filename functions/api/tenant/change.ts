/** PATCH /v1/tenant */
import { versionIn } from '#functions/runtime/conditional.ts';
import { http } from '#functions/runtime/http.ts';
import { ownTenantResource } from '#functions/runtime/present-tenancy.ts';
import { OwnTenantResource, TenantRename } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'PATCH',
    path: '/v1/tenant',
    summary: 'Rename the own tenant',
    description: 'Changes the name for people; the one in keys stays. If-Match makes it conditional.',
    auth: 'key',
    conditional: true,
    permission: 'tenant:write',
    body: TenantRename,
    answers: { 200: { description: 'The tenant as it is now.', body: OwnTenantResource } },
  },
  async ({ control, caller, body, headers, signal }) => {
    const ifVersion = versionIn(headers, 'if-match');
    const options = ifVersion === undefined ? {} : { ifVersion };
    return { body: ownTenantResource(await control.tenants.own.rename(caller, body.displayName, options, signal)) };
  },
);
